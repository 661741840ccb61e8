// SPDX-License-Identifier: Apache-2.0
#include "topology/distance.h"

#include <algorithm>
#include <map>

namespace beeline::topology {
namespace {

bool same(NodeIndex a, NodeIndex b) noexcept { return a == b && a != kNoNode; }

// The nearest switch of devices below this bridge.
NodeIndex switch_at(const Graph& graph, NodeIndex index) noexcept {
  const Node& node = graph[index];
  const bool is_of_switch = node.port == BridgePort::kDownstream &&
                            graph[node.parent].kind == NodeKind::kBridge &&
                            graph[node.parent].port == BridgePort::kUpstream;
  return is_of_switch ? node.parent : index;
}

}  // namespace

const char* to_string(Distance distance) noexcept {
  switch (distance) {
    case Distance::kLoc: return "LOC";
    case Distance::kPix: return "PIX";
    case Distance::kPxb: return "PXB";
    case Distance::kPhb: return "PHB";
    case Distance::kNode: return "NODE";
    case Distance::kSys: return "SYS";
  }
  return "?";
}

const char* meaning(Distance distance) noexcept {
  switch (distance) {
    case Distance::kLoc: return "the same device";
    case Distance::kPix: return "through at most one PCIe switch";
    case Distance::kPxb: return "through several PCIe switches, not through a host bridge";
    case Distance::kPhb: return "through one PCIe host bridge (the processor)";
    case Distance::kNode: return "through several host bridges of one NUMA node";
    case Distance::kSys: return "through the interconnect between NUMA nodes";
  }
  return "?";
}

const char* nccl_name(Distance distance) noexcept {
  return to_string(distance == Distance::kNode ? Distance::kPhb : distance);
}

bool has_hidden_tree(const Graph& graph) {
  const auto below = [&graph](NodeIndex node) {
    return graph[graph[node].parent].kind == NodeKind::kBridge;
  };
  return std::ranges::none_of(graph.gpus(), below) && std::ranges::none_of(graph.nics(), below);
}

Distances::Distances(const Graph& graph) {
  locations_.reserve(graph.size());
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    const NodeIndex parent = graph[i].parent;
    locations_.push_back(locate(graph, i, parent == kNoNode ? Location() : locations_[parent]));
  }
  infer_memory(graph);
}

Distances::Location Distances::locate(const Graph& graph, NodeIndex index, const Location& parent) {
  Location location = parent;
  switch (graph[index].kind) {
    case NodeKind::kMachine: break;
    case NodeKind::kPackage: location.package = index; break;
    case NodeKind::kNumaNode: location.memory = index; break;
    case NodeKind::kHostBridge: location.host_bridge = index; break;
    case NodeKind::kBridge:
      if (location.root_port == kNoNode) location.root_port = index;
      location.nearest_switch = switch_at(graph, index);
      break;
    case NodeKind::kDevice: break;
  }
  return location;
}

// A NUMA node may be known by its number only. If no NUMA node is in the graph, each package counts
// as one, or the whole machine if no package is known. Otherwise a missing NUMA node stays unknown,
// since it may be any of them.
void Distances::infer_memory(const Graph& graph) {
  std::map<int, NodeIndex> by_number;
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    if (graph[i].kind == NodeKind::kNumaNode) by_number[graph[i].number] = i;
  }
  constexpr NodeIndex kMachine = 0;
  const bool has_packages = std::ranges::any_of(
      graph.nodes(), [](const Node& node) { return node.kind == NodeKind::kPackage; });
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    Location& location = locations_[i];
    const auto known = by_number.find(graph[i].numa);
    if (location.memory == kNoNode && known != by_number.end()) location.memory = known->second;
    if (location.memory != kNoNode) {
      // The package of the NUMA node takes precedence over the one in the tree. Otherwise two
      // devices near the same memory could be near different packages.
      location.package = locations_[location.memory].package;
    } else if (by_number.empty()) {
      location.memory = has_packages ? location.package : kMachine;
    }
  }
}

Distance Distances::between(NodeIndex a, NodeIndex b) const noexcept {
  if (a == b) return Distance::kLoc;
  const Location& x = locations_[a];
  const Location& y = locations_[b];
  if (same(x.nearest_switch, y.nearest_switch)) return Distance::kPix;
  if (same(x.root_port, y.root_port)) return Distance::kPxb;
  if (same(x.host_bridge, y.host_bridge)) return Distance::kPhb;
  return same(x.memory, y.memory) ? Distance::kNode : Distance::kSys;
}

int Distances::rank(NodeIndex a, NodeIndex b) const noexcept {
  const Distance distance = between(a, b);
  const bool same_package = same(locations_[a].package, locations_[b].package);
  return static_cast<int>(distance) + (distance == Distance::kSys && !same_package ? 1 : 0);
}

}  // namespace beeline::topology
