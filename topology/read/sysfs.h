// SPDX-License-Identifier: Apache-2.0
//
// Reads a machine from sysfs alone. It needs no library, and also accepts a partial copy of the
// tree; remarks say what could not be seen. Of the PCI functions it keeps those that move data
// (networks, GPUs, storage, accelerators), and the bridges above them.
#pragma once

#include <string>

#include "topology/graph.h"

namespace beeline::topology {

// `root` takes the place of /sys.
GraphParts read_sysfs(const std::string& root);

}  // namespace beeline::topology
