// SPDX-License-Identifier: Apache-2.0
//
// Reads a machine from sysfs alone. Needs no library, and takes a copy of a part of the tree as
// well: remarks say what could not be seen.
//
// Of PCI functions those remain that move data (networks, GPUs, storage, accelerators), and what is
// above them.
#pragma once

#include <string>

#include "topology/graph.h"

namespace beeline::topology {

// `root` is where /sys would be.
GraphParts read_sysfs(const std::string& root);

}  // namespace beeline::topology
