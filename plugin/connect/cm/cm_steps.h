// SPDX-License-Identifier: Apache-2.0
//
// The steps of a queue pair that the connection manager connects, from one state to the next.
#pragma once

#include "common/base/result.h"
#include "plugin/connect/path/qp_options.h"
#include "plugin/verbs/cm_channel.h"

namespace beeline {

// With the access rights that the peer needs (kQpAccess).
Status cm_to_init(const verbs::Qp& qp, verbs::CmId& id);
// From INIT through RTR.
Status cm_to_rts(const verbs::Qp& qp, verbs::CmId& id, const QpOptions& options);

}  // namespace beeline
