// SPDX-License-Identifier: Apache-2.0
#include "topology/link_state.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace beeline::topology {
namespace {

// The maximum of both ends; of the device alone if the slot's is unknown. If the device's maximum
// is unknown, so is the result.
std::uint32_t possible_of(std::uint32_t device, std::uint32_t slot) noexcept {
  return slot == 0 ? device : std::min(device, slot);
}

bool has_link_below(const Node& node) noexcept {
  return node.port == BridgePort::kRoot || node.port == BridgePort::kDownstream;
}

// Ports that are down, and impossible speeds, are not counted.
double port_gigabytes_per_second(const Node& node) noexcept {
  double mbps = 0;
  for (const NicPort& port : node.nic_ports) {
    const bool counts = port.state != PortState::kDown && port.speed_mbps <= kMaxPortMbps;
    if (counts) mbps += port.speed_mbps;
  }
  return mbps / 8'000;
}

// The sum over all functions in the slot, which share its link.
double slot_gigabytes_per_second(const Graph& graph, NodeIndex node) {
  double sum = 0;
  for (const NodeIndex function : slot_of(graph, node)) {
    sum += port_gigabytes_per_second(graph[function]);
  }
  return sum;
}

LinkVerdict judge(const Graph& graph, const LinkState& link) {
  const Node& node = graph[link.node];
  const PcieLink& now = link.now;
  const PcieLink& possible = link.possible;
  if (now.lanes != 0 && now.lanes < possible.lanes) return LinkVerdict::kDegraded;
  if (now.mega_transfers != 0 && now.mega_transfers < possible.mega_transfers) {
    return node.role == DeviceRole::kGpu ? LinkVerdict::kIdle : LinkVerdict::kDegraded;
  }
  if (now.lanes != 0 && now.lanes < link.device_max.lanes) return LinkVerdict::kNarrowSlot;
  // PCIe's packet headers are not subtracted here, so a link that this calls slow is slow.
  const double carried = topology::gigabytes_per_second(now);
  if (carried > 0 && carried < slot_gigabytes_per_second(graph, link.node))
    return LinkVerdict::kBelowPorts;
  return now.is_known() && possible.is_known() ? LinkVerdict::kFull : LinkVerdict::kUnknown;
}

// The link already has all lanes of the device, so only a higher rate can help.
const char* advice_below_ports(const LinkState& link) noexcept {
  if (link.device_max.mega_transfers == 0) return "move it to a faster slot if it supports one";
  return link.device_max.mega_transfers > link.now.mega_transfers
             ? "move it to a faster slot"
             : "it supports no faster link, so expect the lower bandwidth";
}

// " and those of mlx5_1"; empty if it is alone in the slot.
std::string ports_in_slot(const Graph& graph, NodeIndex node) {
  std::string text;
  for (const NodeIndex function : slot_of(graph, node)) {
    if (function == node || port_gigabytes_per_second(graph[function]) <= 0) continue;
    text += (text.empty() ? " and those of " : ", ") + label(graph[function]);
  }
  return text;
}

std::string rounded(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", number);
  return text.data();
}

}  // namespace

const char* to_string(LinkVerdict verdict) noexcept {
  switch (verdict) {
    case LinkVerdict::kUnknown: return "unknown";
    case LinkVerdict::kFull: return "full";
    case LinkVerdict::kIdle: return "idle";
    case LinkVerdict::kDegraded: return "degraded";
    case LinkVerdict::kNarrowSlot: return "narrow slot";
    case LinkVerdict::kBelowPorts: return "below ports";
  }
  return "?";
}

bool is_slow(LinkVerdict verdict) noexcept {
  switch (verdict) {
    case LinkVerdict::kUnknown:
    case LinkVerdict::kFull:
    case LinkVerdict::kIdle: return false;
    case LinkVerdict::kDegraded:
    case LinkVerdict::kNarrowSlot:
    case LinkVerdict::kBelowPorts: return true;
  }
  return false;
}

double LinkState::gigabytes_per_second() const noexcept {
  return topology::gigabytes_per_second(verdict == LinkVerdict::kIdle ? possible : now);
}

bool has_link_above(const Node& node) noexcept {
  if (node.kind == NodeKind::kDevice) return true;
  return node.kind == NodeKind::kBridge && !has_link_below(node);
}

LinkState link_above(const Graph& graph, NodeIndex index) {
  const NodeIndex physical = graph[index].physical_function;
  LinkState link{.node = physical == kNoNode ? index : physical};
  const Node& node = graph[link.node];
  if (!has_link_above(node)) return link;
  link.now = node.link_now;
  link.device_max = node.link_max;
  if (const Node& above = graph[node.parent]; has_link_below(above)) {
    link.slot_max = above.link_max;
    if (link.now.mega_transfers == 0) link.now.mega_transfers = above.link_now.mega_transfers;
    if (link.now.lanes == 0) link.now.lanes = above.link_now.lanes;
  }
  link.possible.mega_transfers =
      possible_of(link.device_max.mega_transfers, link.slot_max.mega_transfers);
  link.possible.lanes = possible_of(link.device_max.lanes, link.slot_max.lanes);
  link.verdict = judge(graph, link);
  return link;
}

// Siblings are adjacent in the graph.
std::vector<NodeIndex> slot_of(const Graph& graph, NodeIndex index) {
  const Node& node = graph[index];
  if (node.kind != NodeKind::kDevice || !node.pci) return {index};
  const auto is_here = [&](NodeIndex other) {
    const Node& sibling = graph[other];
    return sibling.kind == NodeKind::kDevice && sibling.parent == node.parent && sibling.pci &&
           sibling.pci->domain == node.pci->domain && sibling.pci->bus == node.pci->bus &&
           sibling.pci->device == node.pci->device;
  };
  NodeIndex first = index;
  while (first > 1 && is_here(first - 1)) --first;
  std::vector<NodeIndex> functions;
  for (NodeIndex at = first; at < graph.size() && is_here(at); ++at) {
    if (graph[at].physical_function == kNoNode) functions.push_back(at);
  }
  return functions;
}

std::vector<LinkState> links_in_use(const Graph& graph) {
  return links_in_use(graph, graph.nics());
}

std::vector<LinkState> links_in_use(const Graph& graph, std::span<const NodeIndex> nics) {
  std::vector<bool> used(graph.size(), false);
  for (const NodeIndex gpu : graph.gpus()) used[gpu] = true;
  for (const NodeIndex nic : nics) {
    const NodeIndex physical = graph[nic].physical_function;
    used[physical == kNoNode ? nic : physical] = true;
  }
  for (NodeIndex i = graph.size(); i-- > 1;) {  // children first
    if (used[i]) used[graph[i].parent] = true;
  }
  std::vector<LinkState> links;
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    if (!used[i] || !has_link_above(graph[i])) continue;
    const LinkState link = link_above(graph, i);
    const bool is_listed = std::ranges::any_of(slot_of(graph, i), [&](NodeIndex other) {
      return other < i && used[other] && link_above(graph, other).verdict == link.verdict;
    });
    if (!is_listed || !is_slow(link.verdict)) links.push_back(link);
  }
  return links;
}

std::string cause_of(const Graph& graph, const LinkState& link) {
  const bool is_card = graph[link.node].kind == NodeKind::kDevice;
  std::string now = to_string(link.now);
  switch (link.verdict) {
    case LinkVerdict::kUnknown:
    case LinkVerdict::kFull: return now;
    case LinkVerdict::kIdle:
      return now + " now, " + to_string(link.possible) + " under load if it is saving power";
    case LinkVerdict::kDegraded: return now + ", could be " + to_string(link.possible);
    case LinkVerdict::kNarrowSlot:
      return now + ", the " + (is_card ? "device" : "switch") + " could use x" +
             std::to_string(link.device_max.lanes);
    case LinkVerdict::kBelowPorts:
      return now + " carries " + rounded(link.gigabytes_per_second()) +
             " GB/s, but its network ports" + ports_in_slot(graph, link.node) + " carry " +
             rounded(slot_gigabytes_per_second(graph, link.node)) + " GB/s";
  }
  return {};
}

std::string fix_of(const Graph& graph, const LinkState& link) {
  const bool is_card = graph[link.node].kind == NodeKind::kDevice;
  switch (link.verdict) {
    case LinkVerdict::kUnknown:
    case LinkVerdict::kFull:
    case LinkVerdict::kIdle: return {};
    case LinkVerdict::kDegraded:
      return is_card ? "reseat the card, look at the riser and the BIOS"
                     : "look at the cable or riser above this switch and at the BIOS";
    case LinkVerdict::kNarrowSlot:
      return is_card
                 ? "move it to a slot with more lanes"
                 : "if this switch is on a riser or a card, move that to a slot with more lanes";
    case LinkVerdict::kBelowPorts: return advice_below_ports(link);
  }
  return {};
}

std::string describe(const Graph& graph, const LinkState& link) {
  const std::string fix = fix_of(graph, link);
  return cause_of(graph, link) + (fix.empty() ? "" : ": " + fix);
}

}  // namespace beeline::topology
