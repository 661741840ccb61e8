// SPDX-License-Identifier: Apache-2.0
#include "plugin/checks/rails.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "topology/distance.h"

namespace beeline::checks {
namespace {

using topology::Distance;
using topology::Graph;
using topology::kNoNode;
using topology::NodeIndex;

// So many GPUs must have a NIC for each one that has none: with fewer, a host may be built so.
constexpr std::size_t kOthersForEach = 3;

struct Group {
  std::vector<const RdmaDevice*> devices = {};
  std::uint32_t fastest_mbps = 0;
  std::uint64_t mbps() const { return fastest_mbps * std::uint64_t{devices.size()}; }
};

// By model and kind of link. At init the plugin does not know the model; then the speed takes its
// place.
std::vector<Group> groups_of(const Host& host) {
  std::map<std::string, Group> groups;
  for (const RdmaDevice& device : host.devices) {
    const auto port = std::ranges::find_if(device.ports, &Port::is_wanted);
    if (port == device.ports.end()) continue;
    std::string key = device.kind().empty() ? std::to_string(port->speed_mbps) : device.kind();
    Group& group = groups[key += port->is_ethernet ? " Ethernet" : " InfiniBand"];
    group.devices.push_back(&device);
    group.fastest_mbps = std::max(group.fastest_mbps, port->speed_mbps);
  }
  std::vector<Group> all;
  all.reserve(groups.size());
  for (auto& [key, group] : groups) all.push_back(std::move(group));
  return all;
}

NodeIndex node_of(const Graph& graph, const RdmaDevice& device) {
  return find_os_device(graph, topology::OsKind::kRdma, device.name);
}

bool has_gpus_in_a_tree(const Host& host) {
  return host.graph && !host.graph->gpus().empty() && !has_hidden_tree(*host.graph);
}

// Those that are nearest to a GPU.
std::set<std::string> nearest_to_gpus(const Graph& graph,
                                      const std::vector<const RdmaDevice*>& devices) {
  const topology::Distances distances(graph);
  std::set<std::string> near;
  for (const NodeIndex gpu : graph.gpus()) {
    std::multimap<int, std::string> by_rank;
    for (const RdmaDevice* const device : devices) {
      const NodeIndex nic = node_of(graph, *device);
      if (nic != kNoNode) by_rank.emplace(distances.rank(gpu, nic), device->name);
    }
    if (by_rank.empty()) continue;
    const auto [first, last] = by_rank.equal_range(by_rank.begin()->first);
    for (auto at = first; at != last; ++at) near.insert(at->second);
  }
  return near;
}

// The GPUs of the model of which the host has most.
std::vector<NodeIndex> alike_gpus(const Graph& graph) {
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::vector<NodeIndex>> by_model;
  for (const NodeIndex gpu : graph.gpus()) {
    by_model[{graph[gpu].vendor, graph[gpu].device}].push_back(gpu);
  }
  return std::ranges::max_element(by_model, {},
                                  [](const auto& entry) { return entry.second.size(); })
      ->second;
}

}  // namespace

std::set<std::string> rails_of(const Host& host) {
  const std::vector<Group> groups = groups_of(host);
  std::uint64_t most = 0;
  for (const Group& group : groups) most = std::max(most, group.mbps());
  std::vector<const RdmaDevice*> devices;
  std::set<std::string> names;
  for (const Group& group : groups) {
    if (group.mbps() * 2 < most) continue;
    for (const RdmaDevice* const device : group.devices) {
      devices.push_back(device);
      names.insert(device->name);
    }
  }
  if (!has_gpus_in_a_tree(host)) return names;
  std::set<std::string> near = nearest_to_gpus(*host.graph, devices);
  return near.empty() ? names : near;
}

std::optional<LostNics> lost_nics(const Host& host) {
  if (!has_gpus_in_a_tree(host)) return {};
  const Graph& graph = *host.graph;
  const topology::Distances distances(graph);
  const std::vector<NodeIndex> gpus = alike_gpus(graph);
  // By model of the NIC: the GPUs that have one on their own side of the processor.
  std::map<std::string, std::set<NodeIndex>> served;
  for (const RdmaDevice& device : host.devices) {
    const NodeIndex nic = node_of(graph, device);
    if (nic == kNoNode) continue;
    for (const NodeIndex gpu : gpus) {
      if (distances.between(gpu, nic) <= Distance::kPxb) served[device.kind()].insert(gpu);
    }
  }
  const auto usual =
      std::ranges::max_element(served, {}, [](const auto& entry) { return entry.second.size(); });
  if (usual == served.end()) return {};
  LostNics lost{.model = usual->first, .gpus = {}, .others = usual->second.size()};
  for (const NodeIndex gpu : gpus) {
    if (!usual->second.contains(gpu)) lost.gpus.insert(label(graph[gpu]));
  }
  if (lost.gpus.empty() || lost.others < kOthersForEach * lost.gpus.size()) return {};
  return lost;
}

}  // namespace beeline::checks
