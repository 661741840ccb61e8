// SPDX-License-Identifier: Apache-2.0
//
// The agreement of two ends on one path (agreement.h), where the connection manager may have to
// connect it: it needs the addresses of the port's network interface.
//
// Threads: the control thread.
#pragma once

#include <string>

#include "plugin/connect/cm/cm_hub.h"
#include "plugin/connect/handshake/agreement.h"

namespace beeline {

// The connecting end, if it requires the connection manager.
Outcome<void> add_cm_addresses(CmHub& cm, const PortSide& ours, wire::PathOffer& offer);
// The accepting end. If the connection manager is to connect the path, `answer.cm` is there, and
// empty.
Outcome<Agreement> agree_on_path(CmHub& cm, const PortSide& ours, const wire::PathOffer& offer,
                                 const std::string& peer_host, const FlowLabels& labels);

}  // namespace beeline
