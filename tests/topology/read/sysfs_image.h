// SPDX-License-Identifier: Apache-2.0
//
// A machine of a test as the kernel would show it.
#pragma once

#include "tests/topology/read/scratch_folder.h"
#include "topology/graph.h"

namespace beeline::topology {

// Gives each device a class (and GPUs a vendor) that says its role, where it has none: what a
// description leaves open and a kernel does not.
void add_classes(GraphParts& parts);

// Below `folder`. The machine has host bridges, and classes.
void write_sysfs_image(const Graph& graph, const ScratchFolder& folder);

}  // namespace beeline::topology
