// SPDX-License-Identifier: Apache-2.0
#include "topology/path.h"

#include <algorithm>

namespace beeline::topology {
namespace {

// The nodes from this one up to the machine.
std::vector<NodeIndex> path_up(const Graph& graph, NodeIndex from) {
  std::vector<NodeIndex> path;
  for (NodeIndex at = from; at != kNoNode; at = graph[at].parent) path.push_back(at);
  return path;
}

}  // namespace

Path path_between(const Graph& graph, NodeIndex from, NodeIndex to) {
  std::vector<NodeIndex> up = path_up(graph, from);
  std::vector<NodeIndex> down = path_up(graph, to);
  NodeIndex common = kNoNode;
  while (!up.empty() && !down.empty() && up.back() == down.back()) {
    common = up.back();
    up.pop_back();
    down.pop_back();
  }
  Path path;
  path.nodes = up;
  path.top = path.nodes.size();
  path.nodes.push_back(common);
  path.nodes.insert(path.nodes.end(), down.rbegin(), down.rend());

  for (const NodeIndex node : path.nodes) {
    // The link above the common node is not part of the path.
    if (node == common || !has_link_above(graph[node])) continue;
    const LinkState& link = path.links.emplace_back(link_above(graph, node));
    const double rate = link.gigabytes_per_second();
    if (rate <= 0) {
      path.has_unknown_link = true;
    } else if (!path.bottleneck || rate < path.bottleneck->gigabytes_per_second()) {
      path.bottleneck = link;
    }
  }
  return path;
}

std::string describe(const Graph& graph, const Path& path) {
  std::string text;
  for (const NodeIndex node : path.nodes) {
    text += (text.empty() ? "" : " - ") + label(graph[node]);
  }
  return text;
}

}  // namespace beeline::topology
