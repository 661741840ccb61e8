// SPDX-License-Identifier: Apache-2.0
//
// The order of nodes, by what they are and not by who was found first.
#include <algorithm>
#include <string_view>
#include <tuple>

#include "common/base/natural_order.h"
#include "topology/graph_steps.h"

namespace beeline::topology {
namespace {

using Children = std::vector<std::vector<NodeIndex>>;

Children children_of(const std::vector<Node>& nodes) {
  Children children(nodes.size());
  for (NodeIndex i = 0; i < nodes.size(); ++i) {
    if (nodes[i].parent != kNoNode) children[nodes[i].parent].push_back(i);
  }
  return children;
}

// All nodes, every child after its parent.
std::vector<NodeIndex> downwards(const std::vector<Node>& nodes, const Children& children) {
  std::vector<NodeIndex> order;
  order.reserve(nodes.size());
  for (NodeIndex i = 0; i < nodes.size(); ++i) {
    if (nodes[i].parent == kNoNode) order.push_back(i);
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (const NodeIndex child : children[order[at]]) order.push_back(child);
  }
  return order;
}

// What a node is known by, where it has no address: the first one below it, and the first name.
struct NodeMark {
  bool has_no_pci = true;  // these stand last
  PciAddress pci = {};
  std::string_view name = {};
};

NodeMark mark_of(const Node& node) {
  NodeMark mark;
  mark.has_no_pci = !node.pci.has_value();
  if (node.pci) mark.pci = *node.pci;
  mark.name = node.name;
  for (const OsDevice& device : node.os_devices) {
    if (mark.name.empty() || device.kind == OsKind::kRdma) mark.name = device.name;
  }
  return mark;
}

bool is_blank(const NodeMark& mark) noexcept { return mark.has_no_pci && mark.name.empty(); }

bool mark_less(const NodeMark& a, const NodeMark& b) noexcept {
  const auto place = [](const NodeMark& mark) { return std::tie(mark.has_no_pci, mark.pci); };
  if (place(a) != place(b)) return place(a) < place(b);
  return natural_less(a.name, b.name);
}

std::vector<NodeMark> marks_of(const std::vector<Node>& nodes,
                               const std::vector<NodeIndex>& order) {
  std::vector<NodeMark> marks(nodes.size());
  std::ranges::transform(nodes, marks.begin(), mark_of);
  for (auto at = order.rbegin(); at != order.rend(); ++at) {  // upwards
    const Node& node = nodes[*at];
    if (node.parent == kNoNode || nodes[node.parent].pci) continue;
    NodeMark& above = marks[node.parent];
    if (is_blank(marks[*at])) continue;
    if (is_blank(above) || mark_less(marks[*at], above)) above = marks[*at];
  }
  return marks;
}

void sort_lists(Node& node) {
  std::ranges::sort(node.os_devices, [](const OsDevice& a, const OsDevice& b) {
    return a.kind != b.kind ? a.kind < b.kind : natural_less(a.name, b.name);
  });
  std::ranges::sort(node.nic_ports, {},
                    [](const NicPort& port) { return std::pair(port.number, port.speed_mbps); });
  std::ranges::sort(node.gpu.links, {}, [](const GpuLink& link) {
    return std::tuple(link.kind, link.target, link.target_class, link.count,
                      link.mbytes_per_second);
  });
}

}  // namespace

std::vector<Node> in_order(std::vector<Node> nodes) {
  Children children = children_of(nodes);
  const std::vector<NodeMark> marks = marks_of(nodes, downwards(nodes, children));
  for (std::vector<NodeIndex>& siblings : children) {
    std::ranges::sort(siblings, [&](NodeIndex a, NodeIndex b) {
      const auto rank = [&](NodeIndex i) { return std::pair(nodes[i].kind, nodes[i].number); };
      return rank(a) != rank(b) ? rank(a) < rank(b) : mark_less(marks[a], marks[b]);
    });
  }
  const std::vector<NodeIndex> order = downwards(nodes, children);
  std::vector<NodeIndex> place(nodes.size(), kNoNode);
  for (NodeIndex i = 0; i < order.size(); ++i) place[order[i]] = i;

  std::vector<Node> sorted;
  sorted.reserve(nodes.size());
  for (const NodeIndex from : order) {
    Node& node = sorted.emplace_back(std::move(nodes[from]));
    sort_lists(node);
    if (node.parent != kNoNode) node.parent = place[node.parent];
    if (node.physical_function != kNoNode) node.physical_function = place[node.physical_function];
  }
  return sorted;
}

}  // namespace beeline::topology
