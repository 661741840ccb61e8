// SPDX-License-Identifier: Apache-2.0
//
// The way from one device to another through the tree, and its slowest link.
#pragma once

#include <optional>
#include <vector>

#include "topology/link_state.h"

namespace beeline::topology {

struct Path {
  // From one to the other, both included; the node where they meet is nodes[top].
  std::vector<NodeIndex> nodes = {};
  std::size_t top = 0;

  std::vector<LinkState> links = {};  // those with a link, in the same order
  bool has_unknown_link = false;      // so that the bottleneck may be elsewhere

  // The link that carries the least, the first of equals. None when no link is known.
  std::optional<LinkState> bottleneck = {};
};

Path path_between(const Graph& graph, NodeIndex from, NodeIndex to);

// "GPU 0000:19:00.0 - bridge 0000:18:00.0 - mlx5_0". For people.
std::string describe(const Graph& graph, const Path& path);

}  // namespace beeline::topology
