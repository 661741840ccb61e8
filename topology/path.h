// SPDX-License-Identifier: Apache-2.0
//
// The path from one device to another through the tree, and its slowest link.
#pragma once

#include <optional>
#include <vector>

#include "topology/link_state.h"

namespace beeline::topology {

struct Path {
  // All nodes from one device to the other; nodes[top] is the lowest common one.
  std::vector<NodeIndex> nodes = {};
  std::size_t top = 0;

  std::vector<LinkState> links = {};  // the links between them, in the same order
  bool has_unknown_link = false;      // the bottleneck may then be elsewhere

  // The slowest link, the first of several. Empty if no link is known.
  std::optional<LinkState> bottleneck = {};
};

Path path_between(const Graph& graph, NodeIndex from, NodeIndex to);

// "GPU 0000:19:00.0 - bridge 0000:18:00.0 - mlx5_0".
std::string describe(const Graph& graph, const Path& path);

}  // namespace beeline::topology
