// SPDX-License-Identifier: Apache-2.0
//
// Writes a machine as a sysfs tree, as the kernel would show it.
#pragma once

#include "tests/tools/topology/scratch_folder.h"
#include "topology/graph.h"

namespace beeline::topology {

// Gives each device without a class one that matches its role, and GPUs a vendor. A description may
// omit these, but a kernel never does.
void add_classes(GraphParts& parts);

// Writes the tree below `folder`. The machine must have host bridges and classes.
void write_sysfs_image(const Graph& graph, const ScratchFolder& folder);

}  // namespace beeline::topology
