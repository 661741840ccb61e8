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
  std::set<std::string> cards = {};
  bool is_active = false;  // at least one of the ports
  // Active ports only: the rate that the kernel reports for a port that is down says nothing.
  std::uint32_t fastest_mbps = 0;
  std::uint64_t mbps() const { return fastest_mbps * std::uint64_t{devices.size()}; }
};

bool is_in_use(const Port& port) { return port.is_wanted && port.is_active(); }

// By model and kind of link. At init the plugin does not know the model; then the speed takes its
// place, and all ports are active.
std::vector<Group> groups_of(const Host& host) {
  std::map<std::string, Group> groups;
  for (const RdmaDevice& device : host.devices) {
    auto port = std::ranges::find_if(device.ports, is_in_use);
    const bool is_active = port != device.ports.end();
    if (!is_active) port = std::ranges::find_if(device.ports, &Port::is_wanted);
    if (port == device.ports.end()) continue;
    std::string key = device.kind().empty() ? std::to_string(port->speed_mbps) : device.kind();
    Group& group = groups[key += port->is_ethernet ? " Ethernet" : " InfiniBand"];
    group.devices.push_back(&device);
    group.cards.insert(device.is_soft() ? device.name
                                        : device.pci.substr(0, device.pci.rfind('.')));
    if (!is_active) continue;
    group.is_active = true;
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

// Whether the group has a NIC on a GPU's own side of the processor, where no NIC is active.
bool serves_a_gpu_alone(const Host& host, const Group& group) {
  if (!has_gpus_in_a_tree(host)) return false;
  const topology::Distances distances(*host.graph);
  const auto is_near = [&](NodeIndex gpu, const RdmaDevice& device) {
    const NodeIndex nic = node_of(*host.graph, device);
    return nic != kNoNode && distances.between(gpu, nic) <= Distance::kPxb;
  };
  return std::ranges::any_of(host.graph->gpus(), [&](NodeIndex gpu) {
    return std::ranges::any_of(group.devices,
                               [&](const RdmaDevice* device) { return is_near(gpu, *device); }) &&
           std::ranges::none_of(host.devices, [&](const RdmaDevice& device) {
             return std::ranges::any_of(device.ports, is_in_use) && is_near(gpu, device);
           });
  });
}

// The groups that may be rails. One without an active port is either what jobs should use, or cards
// that have no cable. It counts as the former if GPUs depend on it, or if its cards would have more
// bandwidth than any other group, as fast as the fastest port of the host.
std::vector<Group> likely_rails(const Host& host) {
  std::vector<Group> groups = groups_of(host);
  std::uint32_t fastest = 1;
  std::uint64_t most_active = 0;
  for (const Group& group : groups) {
    fastest = std::max(fastest, group.fastest_mbps);
    most_active = std::max(most_active, group.mbps());
  }
  const auto weight = [fastest](const Group& group) {
    return group.is_active ? group.mbps() : fastest * std::uint64_t{group.cards.size()};
  };
  // Whatever the bandwidth of the others.
  const auto is_needed = [&host](const Group& group) {
    return !group.is_active && serves_a_gpu_alone(host, group);
  };
  std::erase_if(groups, [&](const Group& group) {
    return !group.is_active && weight(group) <= most_active && !is_needed(group);
  });
  std::uint64_t most = 0;
  for (const Group& group : groups) most = std::max(most, weight(group));
  std::erase_if(groups,
                [&](const Group& group) { return weight(group) * 2 < most && !is_needed(group); });
  return groups;
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
  std::vector<const RdmaDevice*> devices;
  std::set<std::string> names;
  for (const Group& group : likely_rails(host)) {
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
