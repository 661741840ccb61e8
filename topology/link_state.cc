// SPDX-License-Identifier: Apache-2.0
//
// Judging links.
#include "topology/link_state.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace beeline::topology {
namespace {

// What both ends can, or the device alone where the slot is not known. What a slot can says nothing
// of a device that is not known.
std::uint32_t possible_of(std::uint32_t device, std::uint32_t slot) noexcept {
  return slot == 0 ? device : std::min(device, slot);
}

bool has_link_below(const Node& node) noexcept {
  return node.port == BridgePort::kRoot || node.port == BridgePort::kDownstream;
}

double port_gigabytes_per_second(const Node& node) noexcept {
  double mbps = 0;
  for (const NicPort& port : node.nic_ports) mbps += port.speed_mbps;
  return mbps / 8'000;
}

LinkVerdict judge(const Node& node, const LinkState& link) noexcept {
  const PcieLink& now = link.now;
  const PcieLink& possible = link.possible;
  if (now.lanes != 0 && now.lanes < possible.lanes) return LinkVerdict::kDegraded;
  if (now.mega_transfers != 0 && now.mega_transfers < possible.mega_transfers) {
    return node.role == DeviceRole::kGpu ? LinkVerdict::kIdle : LinkVerdict::kDegraded;
  }
  if (now.lanes != 0 && now.lanes < link.device_max.lanes) return LinkVerdict::kNarrowSlot;
  // A port's rate is what the wire carries; PCIe's packet headers take a part of what is compared
  // here, so this accuses nobody wrongly.
  const double carried = topology::gigabytes_per_second(now);
  if (carried > 0 && carried < port_gigabytes_per_second(node)) return LinkVerdict::kBelowPorts;
  return now.is_known() && possible.is_known() ? LinkVerdict::kFull : LinkVerdict::kUnknown;
}

// Lanes are not it: they are as many as the device has.
const char* advice_below_ports(const LinkState& link) noexcept {
  if (link.device_max.mega_transfers == 0) return "look for a faster slot";
  return link.device_max.mega_transfers > link.now.mega_transfers
             ? "put it into a faster slot"
             : "the card can do no more, reckon with the lower number";
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
  link.verdict = judge(node, link);
  return link;
}

std::string describe(const Graph& graph, const LinkState& link) {
  std::string now = to_string(link.now);
  switch (link.verdict) {
    case LinkVerdict::kUnknown:
    case LinkVerdict::kFull: return now;
    case LinkVerdict::kIdle:
      return now + " now, " + to_string(link.possible) + " under load if it is saving power";
    case LinkVerdict::kDegraded:
      return now + ", could be " + to_string(link.possible) +
             ": reseat the card, look at the riser and the BIOS";
    case LinkVerdict::kNarrowSlot:
      return now + ", the device could use x" + std::to_string(link.device_max.lanes) +
             ": put it into a wider slot";
    case LinkVerdict::kBelowPorts:
      return now + " carries " + rounded(link.gigabytes_per_second()) +
             " GB/s, the network ports " + rounded(port_gigabytes_per_second(graph[link.node])) +
             " GB/s: " + advice_below_ports(link);
  }
  return {};
}

}  // namespace beeline::topology
