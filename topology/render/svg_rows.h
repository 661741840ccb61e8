// SPDX-License-Identifier: Apache-2.0
//
// Selects what is drawn of a machine: a row for each NUMA node, and in it a tree without the bridge
// ports that have no box.
#pragma once

#include <vector>

#include "topology/graph.h"

namespace beeline::topology {

struct DrawnTree {
  std::vector<std::vector<NodeIndex>> children = {};  // by node, of the nodes that are drawn
  std::vector<NodeIndex> rows =
      {};  // NUMA nodes with I/O below them; also packages and the machine
};

// Host bridges, switches, GPUs and RDMA NICs. Bridges without a GPU or NIC below them, and virtual
// functions of a drawn physical function, are omitted.
DrawnTree drawn_tree(const Graph& graph);

}  // namespace beeline::topology
