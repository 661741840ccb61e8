// SPDX-License-Identifier: Apache-2.0
//
// Adds to nodes of PCI functions what sysfs knows about them: IDs, links, names, network ports,
// roles. All readers of the live machine use it.
#pragma once

#include <string>
#include <vector>

#include "topology/node.h"
#include "topology/read/remarks.h"

namespace beeline::topology {

// Sets unknown fields and the roles of all devices, and adds RDMA devices that are not PCI
// functions. Remarks say which parts of the machine cannot be seen.
void add_sysfs_devices(std::vector<Node>& nodes, const std::string& root, Remarks& remarks);

}  // namespace beeline::topology
