// SPDX-License-Identifier: Apache-2.0
//
// Derives the NUMA node of each node from the tree and from what the devices report.
#include <algorithm>
#include <map>

#include "topology/graph_build.h"

namespace beeline::topology {
namespace {

bool is_io(const Node& node) noexcept { return node.kind >= NodeKind::kHostBridge; }

// The topmost I/O node above each I/O node, usually a host bridge. All nodes below it share a NUMA
// node.
std::vector<NodeIndex> tops_of(const std::vector<Node>& nodes) {
  std::vector<NodeIndex> tops(nodes.size(), kNoNode);
  for (NodeIndex i = 0; i < nodes.size(); ++i) {  // parents first
    if (is_io(nodes[i])) tops[i] = is_io(nodes[nodes[i].parent]) ? tops[nodes[i].parent] : i;
  }
  return tops;
}

// The number of the NUMA node above, or the one that the topmost node reports.
int numa_above(const std::vector<Node>& nodes, NodeIndex top) {
  const Node& parent = nodes[nodes[top].parent];
  return parent.kind == NodeKind::kNumaNode ? parent.number : nodes[top].numa;
}

// The number of the NUMA node if the machine has only one; otherwise -1.
int only_numa(const std::vector<Node>& nodes) {
  const auto is_numa = [](const Node& node) { return node.kind == NodeKind::kNumaNode; };
  const auto found = std::ranges::find_if(nodes, is_numa);
  return std::ranges::count_if(nodes, is_numa) == 1 ? found->number : -1;
}

// Moves host bridges below their NUMA nodes if these are siblings; creates missing NUMA nodes.
void move_below_numa(std::vector<Node>& nodes, const std::vector<NodeIndex>& tops) {
  std::map<int, NodeIndex> numas;
  for (NodeIndex i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind == NodeKind::kNumaNode) numas[nodes[i].number] = i;
  }
  for (NodeIndex top = 0; top < tops.size(); ++top) {
    if (tops[top] != top || nodes[top].numa < 0) continue;
    const NodeIndex parent = nodes[top].parent;
    if (nodes[parent].kind == NodeKind::kNumaNode) continue;
    const int number = nodes[top].numa;
    const auto [numa, is_new] = numas.try_emplace(number, nodes.size());
    if (is_new) {
      nodes.push_back({.kind = NodeKind::kNumaNode, .parent = parent, .number = number});
      nodes.back().numa = number;
    }
    // If the NUMA node is below another package, the tree is left as it is.
    if (nodes[parent].kind == NodeKind::kMachine || nodes[numa->second].parent == parent) {
      nodes[top].parent = numa->second;
    }
  }
}

}  // namespace

void infer_numa(std::vector<Node>& nodes, std::vector<std::string>& remarks) {
  const std::vector<NodeIndex> tops = tops_of(nodes);
  std::vector<int> numa_of(nodes.size(), -1);  // by topmost
  for (NodeIndex i = 0; i < nodes.size(); ++i) {
    if (tops[i] == i) numa_of[i] = numa_above(nodes, i);
    if (tops[i] != kNoNode && numa_of[tops[i]] < 0) numa_of[tops[i]] = nodes[i].numa;
  }
  const int otherwise = only_numa(nodes);
  std::vector<bool> remarked(nodes.size(), false);
  for (NodeIndex i = 0; i < nodes.size(); ++i) {
    Node& node = nodes[i];
    if (node.kind == NodeKind::kNumaNode) node.numa = node.number;
    if (tops[i] == kNoNode) continue;
    int& numa = numa_of[tops[i]];
    if (numa < 0) numa = otherwise;
    if (node.numa >= 0 && node.numa != numa && !remarked[tops[i]]) {
      remarked[tops[i]] = true;
      remarks.push_back(label(node) + " says NUMA node " + std::to_string(node.numa) + ", but " +
                        label(nodes[tops[i]]) + " belongs to NUMA node " + std::to_string(numa) +
                        "; NUMA node " + std::to_string(numa) + " is used");
    }
    node.numa = numa;
  }
  move_below_numa(nodes, tops);
}

void inherit_cpus(std::vector<Node>& nodes) {
  for (Node& node : nodes) {
    if (!node.cpus.empty() || !is_io(node)) continue;
    const Node& parent = nodes[node.parent];
    if (parent.kind != NodeKind::kMachine) node.cpus = parent.cpus;
  }
}

}  // namespace beeline::topology
