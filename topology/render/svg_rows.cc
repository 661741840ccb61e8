// SPDX-License-Identifier: Apache-2.0
#include "topology/render/svg_rows.h"

namespace beeline::topology {
namespace {

bool is_drawn_device(const Graph& graph, const Node& node) {
  if (node.role == DeviceRole::kOther) return false;
  return node.physical_function == kNoNode ||
         graph[node.physical_function].role == DeviceRole::kOther;
}

bool has_box(const Graph& graph, NodeIndex index) {
  const Node& node = graph[index];
  switch (node.kind) {
    case NodeKind::kMachine:
    case NodeKind::kPackage:
    case NodeKind::kNumaNode:
    case NodeKind::kHostBridge: return true;
    case NodeKind::kBridge:
      return node.port == BridgePort::kUpstream || node.port == BridgePort::kSwitch;
    case NodeKind::kDevice: return is_drawn_device(graph, node);
  }
  return false;
}

}  // namespace

DrawnTree drawn_tree(const Graph& graph) {
  std::vector<bool> used(graph.size(), false);
  for (NodeIndex i = graph.size(); i-- > 0;) {  // children first
    used[i] = used[i] || is_drawn_device(graph, graph[i]);
    if (used[i] && graph[i].parent != kNoNode) used[graph[i].parent] = true;
  }
  DrawnTree tree;
  tree.children.resize(graph.size());
  std::vector<bool> is_row(graph.size(), false);
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    if (!used[i] || graph[i].kind < NodeKind::kHostBridge || !has_box(graph, i)) continue;
    NodeIndex above = graph[i].parent;
    while (!has_box(graph, above)) above = graph[above].parent;
    tree.children[above].push_back(i);
    is_row[above] = is_row[above] || graph[above].kind < NodeKind::kHostBridge;
  }
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    if (is_row[i]) tree.rows.push_back(i);
  }
  return tree;
}

}  // namespace beeline::topology
