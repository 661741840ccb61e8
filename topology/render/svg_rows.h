// SPDX-License-Identifier: Apache-2.0
//
// What of a machine is drawn: a row for each NUMA node, and in it a tree without the ports that
// have no box of their own.
#pragma once

#include <vector>

#include "topology/graph.h"

namespace beeline::topology {

struct DrawnTree {
  std::vector<std::vector<NodeIndex>> children = {};  // by node, of the nodes that are drawn
  std::vector<NodeIndex> rows = {};  // what I/O hangs on: NUMA nodes; packages and the machine too
};

// Host bridges, switches, GPUs and RDMA NICs; no bridge without one of these below it, and no
// virtual function beside its physical one.
DrawnTree drawn_tree(const Graph& graph);

}  // namespace beeline::topology
