// SPDX-License-Identifier: Apache-2.0
//
// What sysfs knows of PCI functions that are in the graph already: identity, links, names, network
// ports, roles. For every reader of the live machine.
#pragma once

#include <string>
#include <vector>

#include "topology/node.h"
#include "topology/read/remarks.h"

namespace beeline::topology {

// Fills in what is unknown, and settles the roles of all devices. RDMA devices without PCI are
// added. Remarks say what of the machine cannot be seen.
void add_sysfs_devices(std::vector<Node>& nodes, const std::string& root, Remarks& remarks);

}  // namespace beeline::topology
