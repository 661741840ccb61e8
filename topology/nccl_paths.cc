// SPDX-License-Identifier: Apache-2.0
#include "topology/nccl_paths.h"

#include <algorithm>
#include <limits>

#include "topology/link_state.h"
#include "topology/nccl_link.h"

namespace beeline::topology {
namespace {

constexpr float kNoLimit = 5'000.0F;  // NCCL's value for links within a device
constexpr float kUnknownNet = 1.25F;  // NCCL's value for a port without a speed

bool is_down(const NicPort& port) noexcept { return port.state == PortState::kDown; }

bool is_downstream_of_switch(const Graph& graph, NodeIndex index) noexcept {
  const Node& node = graph[index];
  const Node& parent = graph[node.parent];
  return node.port == BridgePort::kDownstream && parent.kind == NodeKind::kBridge &&
         parent.port == BridgePort::kUpstream;
}

// 0: no speed is known.
std::uint32_t fastest_port(const Graph& graph, std::span<const NodeIndex> nics) noexcept {
  std::uint32_t mbps = 0;
  for (const NodeIndex nic : nics) {
    for (const NicPort& port : graph[nic].nic_ports) mbps = std::max(mbps, port.speed_mbps);
  }
  return mbps;
}

std::vector<std::vector<NodeIndex>> children_of(const Graph& graph) {
  std::vector<std::vector<NodeIndex>> children(graph.size());
  for (NodeIndex i = 1; i < graph.size(); ++i) children[graph[i].parent].push_back(i);
  return children;
}

// As they stand in the file, if it is one of NCCL's. Otherwise sorted by NUMA node, with nodes
// without one last; then depth first, by address.
std::vector<NodeIndex> in_nccl_order(const Graph& graph, std::span<const NodeIndex> nics) {
  const auto place_in_file = [&graph](NodeIndex nic) { return graph[nic].place_in_file; };
  if (std::ranges::all_of(nics, [&](NodeIndex nic) { return place_in_file(nic) >= 0; })) {
    std::vector<NodeIndex> order(nics.begin(), nics.end());
    std::ranges::sort(order, {}, place_in_file);
    return order;
  }
  std::vector<std::vector<NodeIndex>> children = children_of(graph);
  for (std::vector<NodeIndex>& siblings : children) {
    std::ranges::stable_sort(siblings, {}, [&graph](NodeIndex i) {
      return std::pair(!graph[i].pci.has_value(), graph[i].pci.value_or(PciAddress()));
    });
  }
  std::vector<std::size_t> place(graph.size());
  std::vector<NodeIndex> stack{0};
  for (std::size_t next = 0; !stack.empty();) {
    const NodeIndex at = stack.back();
    stack.pop_back();
    place[at] = next++;
    stack.insert(stack.end(), children[at].rbegin(), children[at].rend());
  }
  std::vector<NodeIndex> order(nics.begin(), nics.end());
  const auto key = [&](NodeIndex nic) {
    return std::pair(static_cast<unsigned>(graph[nic].numa), place[nic]);
  };
  std::ranges::sort(order, {}, key);
  return order;
}

}  // namespace

std::vector<NodeIndex> nics_not_down(const Graph& graph) {
  std::vector<NodeIndex> nics;
  for (const NodeIndex nic : graph.nics()) {
    const std::vector<NicPort>& ports = graph[nic].nic_ports;
    if (ports.empty() || !std::ranges::all_of(ports, is_down)) nics.push_back(nic);
  }
  return nics;
}

std::vector<NcclNet> nccl_nets(const Graph& graph, std::span<const NodeIndex> nics) {
  const std::uint32_t fastest = fastest_port(graph, nics);
  const auto bandwidth = [fastest](std::uint32_t mbps, float otherwise) {
    if (mbps == 0 && fastest == 0) return otherwise;
    return static_cast<float>((mbps == 0 ? fastest : mbps) / 8'000.0);
  };
  std::vector<NcclNet> nets;
  for (const NodeIndex nic : in_nccl_order(graph, nics)) {
    const std::vector<NicPort>& ports = graph[nic].nic_ports;
    const bool all_down = std::ranges::all_of(ports, is_down);  // then this is probably intended
    // A file of hwloc describes no ports. Then the link alone tells a slow NIC from a fast one.
    if (ports.empty()) nets.push_back({nic, bandwidth(0, kNoLimit)});
    for (const NicPort& port : ports) {
      if (all_down || !is_down(port))
        nets.push_back({nic, bandwidth(port.speed_mbps, kUnknownNet)});
    }
  }
  return nets;
}

NcclPaths::NcclPaths(const Graph& graph)
    : graph_(graph),
      locations_(graph.size()),
      above_(graph.size(), kNoLimit),
      c2c_(graph.size(), 0),
      inter_cpu_(graph.size(), nccl_bandwidth(CpuFacts())) {
  for (NodeIndex i = 1; i < graph.size(); ++i) {  // parents first
    const Node& node = graph[i];
    Location& location = locations_[i];
    location = locations_[node.parent];
    ++location.depth;
    inter_cpu_[i] = inter_cpu_[node.parent];
    if (node.cpu != CpuFacts()) inter_cpu_[i] = nccl_bandwidth(node.cpu);
    if (node.kind < NodeKind::kBridge) continue;
    const bool is_port = node.kind == NodeKind::kBridge && !has_link_above(node);
    const bool has_pci = node.pci.has_value() || node.physical_function != kNoNode;
    if (!is_port && has_pci) above_[i] = nccl_bandwidth(link_for_nccl(graph, i));
    for (const GpuLink& link : node.gpu.links) {
      if (link.kind == GpuLinkKind::kC2c) c2c_[i] = nccl_bandwidth(link, node.gpu.sm);
    }
    if (node.kind != NodeKind::kBridge) continue;
    if (location.top_bridge == kNoNode) location.top_bridge = i;
    const NodeIndex upper = location.nearest_switch;
    if (upper != kNoNode && is_same_switch_to_nccl(graph[upper], node)) {
      above_[i] = kNoLimit;  // for NCCL they are one switch
    } else if (!is_downstream_of_switch(graph, i)) {
      location.nearest_switch = i;
    }
  }
}

NcclPathType NcclPaths::path_between(NodeIndex gpu, NodeIndex nic) const noexcept {
  const auto same = [](NodeIndex a, NodeIndex b) { return a == b && a != kNoNode; };
  const Location& x = locations_[gpu];
  const Location& y = locations_[nic];
  if (same(x.nearest_switch, y.nearest_switch)) return NcclPathType::kPix;
  if (same(x.top_bridge, y.top_bridge)) return NcclPathType::kPxb;
  return graph_[gpu].numa == graph_[nic].numa ? NcclPathType::kPhb : NcclPathType::kSys;
}

NcclPath NcclPaths::between(NodeIndex gpu, const NcclNet& net) const {
  NcclPath path{.bandwidth = net.bandwidth, .type = path_between(gpu, net.nic)};
  float of_gpu = kNoLimit;
  for (NodeIndex a = gpu, b = net.nic; a != b;) {
    if (locations_[a].depth >= locations_[b].depth) {
      of_gpu = std::min(of_gpu, above_[a]);
      a = graph_[a].parent;
    } else {
      path.bandwidth = std::min(path.bandwidth, above_[b]);
      b = graph_[b].parent;
    }
  }
  if (path.type >= NcclPathType::kPhb) of_gpu = std::max(of_gpu, c2c_[gpu]);
  if (path.type == NcclPathType::kSys)
    path.bandwidth = std::min(path.bandwidth, inter_cpu_[net.nic]);
  path.bandwidth = std::min(path.bandwidth, of_gpu);
  return path;
}

}  // namespace beeline::topology
