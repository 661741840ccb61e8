// SPDX-License-Identifier: Apache-2.0
//
// What a PCI device is good for, from what the bus and the operating system say of it. For readers;
// whoever knows better (a GPU named by the driver) sets Node::role by hand.
#pragma once

#include "topology/node.h"

namespace beeline::topology {

// A GPU: a 3D controller or a processing accelerator, or a display controller or VGA of NVIDIA or
// AMD that can compute (a server's console chip is VGA too). An RDMA NIC: a network controller, an
// InfiniBand controller of old, or a device of unknown class, that has an RDMA device; so a NIC
// without a driver, or one given to a virtual machine, is none, and neither is an RDMA device of
// something else (a coprocessor's link, scif0).
DeviceRole guess_role(const Node& node) noexcept;

}  // namespace beeline::topology
