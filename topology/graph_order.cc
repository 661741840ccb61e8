// SPDX-License-Identifier: Apache-2.0
//
// Sorts nodes by their properties, so that the order does not depend on the reader.
#include <algorithm>
#include <string_view>
#include <tuple>

#include "common/base/natural_order.h"
#include "topology/graph_build.h"

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

// All nodes, with every child after its parent.
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

// The sort key of a node: its address, or the first address below it, and its first name.
struct SortKey {
  bool has_no_pci = true;  // these are sorted last
  PciAddress pci = {};
  std::string_view name = {};
};

SortKey key_of(const Node& node) {
  SortKey key;
  key.has_no_pci = !node.pci.has_value();
  if (node.pci) key.pci = *node.pci;
  key.name = node.name;
  for (const OsDevice& device : node.os_devices) {
    if (key.name.empty() || device.kind == OsKind::kRdma) key.name = device.name;
  }
  return key;
}

bool is_blank(const SortKey& key) noexcept { return key.has_no_pci && key.name.empty(); }

bool key_less(const SortKey& a, const SortKey& b) noexcept {
  const auto place = [](const SortKey& key) { return std::tie(key.has_no_pci, key.pci); };
  if (place(a) != place(b)) return place(a) < place(b);
  return natural_less(a.name, b.name);
}

std::vector<SortKey> keys_of(const std::vector<Node>& nodes, const std::vector<NodeIndex>& order) {
  std::vector<SortKey> keys(nodes.size());
  std::ranges::transform(nodes, keys.begin(), key_of);
  for (auto at = order.rbegin(); at != order.rend(); ++at) {  // upwards
    const Node& node = nodes[*at];
    if (node.parent == kNoNode || nodes[node.parent].pci) continue;
    SortKey& above = keys[node.parent];
    if (is_blank(keys[*at])) continue;
    if (is_blank(above) || key_less(keys[*at], above)) above = keys[*at];
  }
  return keys;
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
  const std::vector<SortKey> keys = keys_of(nodes, downwards(nodes, children));
  for (std::vector<NodeIndex>& siblings : children) {
    std::ranges::sort(siblings, [&](NodeIndex a, NodeIndex b) {
      const auto rank = [&](NodeIndex i) { return std::pair(nodes[i].kind, nodes[i].number); };
      return rank(a) != rank(b) ? rank(a) < rank(b) : key_less(keys[a], keys[b]);
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
