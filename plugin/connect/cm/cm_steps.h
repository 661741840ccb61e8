// SPDX-License-Identifier: Apache-2.0
//
// The steps of a queue pair that the connection manager connects: its states, and a first message.
//
// The active side sends the first message. On iWARP the passive side may not send before that has
// arrived, and NCCL's receiver, which is the passive side, would. So the active side sends one
// byte, and both ends poll its completion before anything else uses their queues. The byte is the
// PathSetup's scratch byte at both ends. A message of zero bytes would do, but not every device can
// receive one (siw cannot).
#pragma once

#include "common/base/problem.h"
#include "plugin/connect/path/qp_options.h"
#include "plugin/verbs/cm_channel.h"

namespace beeline {

// With the access rights that the peer needs (kQpAccess).
Status cm_to_init(const verbs::Qp& qp, verbs::CmId& id);
// From INIT through RTR. Not for iWARP, where the kernel moves the queue pair.
Status cm_to_rts(const verbs::Qp& qp, verbs::CmId& id, const QpOptions& options);

// The receive of the first message: in INIT, before the connection is accepted.
Status post_first_receive(const verbs::Qp& qp, ibv_sge scratch);
Status post_first_send(const verbs::Qp& qp, ibv_sge scratch);
// Whether the completion of either was there; it is taken.
Outcome<bool> is_first_message_done(ibv_cq* cq);

}  // namespace beeline
