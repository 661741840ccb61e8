// SPDX-License-Identifier: Apache-2.0
//
// Distances by common places.
#include "topology/distance.h"

#include <algorithm>
#include <map>

namespace beeline::topology {
namespace {

bool same(NodeIndex a, NodeIndex b) noexcept { return a == b && a != kNoNode; }

// What devices below this bridge have as their nearest switch.
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

const char* nccl_word(Distance distance) noexcept {
  return to_string(distance == Distance::kNode ? Distance::kPhb : distance);
}

bool hides_its_tree(const Graph& graph) {
  const auto below = [&graph](NodeIndex node) {
    return graph[graph[node].parent].kind == NodeKind::kBridge;
  };
  return std::ranges::none_of(graph.gpus(), below) && std::ranges::none_of(graph.nics(), below);
}

Places::Places(const Graph& graph) {
  places_.reserve(graph.size());
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    const NodeIndex parent = graph[i].parent;
    places_.push_back(place_of(graph, i, parent == kNoNode ? Place() : places_[parent]));
  }
  settle_memory(graph);
}

Places::Place Places::place_of(const Graph& graph, NodeIndex index, const Place& parent) {
  Place place = parent;
  switch (graph[index].kind) {
    case NodeKind::kMachine: break;
    case NodeKind::kPackage: place.package = index; break;
    case NodeKind::kNumaNode: place.memory = index; break;
    case NodeKind::kHostBridge: place.host_bridge = index; break;
    case NodeKind::kBridge:
      if (place.root_port == kNoNode) place.root_port = index;
      place.nearest_switch = switch_at(graph, index);
      break;
    case NodeKind::kDevice: break;
  }
  return place;
}

// A NUMA node may be known by number alone. One that is not known may be any of those that are;
// where none is, a package counts as one, and a machine whose packages are not known either.
void Places::settle_memory(const Graph& graph) {
  std::map<int, NodeIndex> by_number;
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    if (graph[i].kind == NodeKind::kNumaNode) by_number[graph[i].number] = i;
  }
  constexpr NodeIndex kMachine = 0;
  const bool has_packages = std::ranges::any_of(
      graph.nodes(), [](const Node& node) { return node.kind == NodeKind::kPackage; });
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    Place& place = places_[i];
    const auto known = by_number.find(graph[i].numa);
    if (place.memory == kNoNode && known != by_number.end()) place.memory = known->second;
    if (place.memory != kNoNode) {
      // The NUMA node's package goes before the one in the tree: else two things near to the same
      // memory could be near to different packages.
      place.package = places_[place.memory].package;
    } else if (by_number.empty()) {
      place.memory = has_packages ? place.package : kMachine;
    }
  }
}

Distance Places::between(NodeIndex a, NodeIndex b) const noexcept {
  if (a == b) return Distance::kLoc;
  const Place& x = places_[a];
  const Place& y = places_[b];
  if (same(x.nearest_switch, y.nearest_switch)) return Distance::kPix;
  if (same(x.root_port, y.root_port)) return Distance::kPxb;
  if (same(x.host_bridge, y.host_bridge)) return Distance::kPhb;
  return same(x.memory, y.memory) ? Distance::kNode : Distance::kSys;
}

int Places::rank(NodeIndex a, NodeIndex b) const noexcept {
  const Distance distance = between(a, b);
  const bool same_package = same(places_[a].package, places_[b].package);
  return static_cast<int>(distance) + (distance == Distance::kSys && !same_package ? 1 : 0);
}

}  // namespace beeline::topology
