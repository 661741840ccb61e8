// SPDX-License-Identifier: Apache-2.0
//
// The role of a PCI device, derived from its class and from what the operating system calls it. A
// reader that knows better sets Node::role itself.
#pragma once

#include "topology/node.h"

namespace beeline::topology {

// A GPU is a 3D controller, a processing accelerator, or a display controller of NVIDIA or AMD that
// can compute (a server's console chip cannot). An RDMA NIC is a network controller, an old
// InfiniBand controller or a device of unknown class that has an RDMA device. So a NIC without a
// driver, or one that was given to a virtual machine, is not an RDMA NIC; neither is a
// coprocessor's link (scif0).
DeviceRole guess_role(const Node& node) noexcept;

}  // namespace beeline::topology
