// SPDX-License-Identifier: Apache-2.0
//
// What a queue pair of ours needs around a connection by the connection manager: its states, and
// the greeting.
//
// The connecting side speaks first: on iWARP the accepting side may not send before the first
// message of the other has come, and NCCL's receiver, which accepts, would. So the connecting side
// sends one byte, and both ends see its completion before anybody else looks at their queues. The
// byte lies at the start of both ends' control memory and is zero, as all of it still is: a message
// without a byte would do, but not every device can be asked to receive one (siw).
#pragma once

#include "plugin/connect/path/qp_options.h"
#include "plugin/memory/control_block.h"
#include "plugin/verbs/cm_channel.h"

namespace beeline {

// With the rights that the peer needs.
Status cm_to_init(const verbs::Qp& qp, verbs::CmId& id);
// Through RTR. Not for iWARP, where the kernel does it.
Status cm_to_rts(const verbs::Qp& qp, verbs::CmId& id, const QpOptions& options);

// In INIT, before the connection is accepted.
Status post_greeting_receive(const verbs::Qp& qp, const ControlBlock& memory);
Status post_greeting(const verbs::Qp& qp, const ControlBlock& memory);
// Whether the one completion of either has come. The error is a text for people.
Result<bool, std::string> has_greeted(ibv_cq* cq);

}  // namespace beeline
