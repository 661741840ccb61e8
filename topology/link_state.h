// SPDX-License-Identifier: Apache-2.0
//
// How the PCIe link above a device is doing: what it carries now, and what it should.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topology/graph.h"

namespace beeline::topology {

enum class LinkVerdict : std::uint8_t {
  kUnknown,     // nothing to judge by
  kFull,        // as fast as both ends can
  kIdle,        // a GPU's link at a lower rate with all its lanes: it may be saving power
  kDegraded,    // slower than both ends can: a bad seat, riser, slot, or BIOS setting
  kNarrowSlot,  // all that the slot has, and fewer lanes than the device
  kBelowPorts,  // less than the NIC's network ports carry together
};
const char* to_string(LinkVerdict verdict) noexcept;
bool is_slow(LinkVerdict verdict) noexcept;  // kDegraded, kNarrowSlot, kBelowPorts

struct LinkState {
  NodeIndex node = kNoNode;  // at the lower end of the link
  PcieLink now = {};
  PcieLink device_max = {};  // of the lower end
  PcieLink slot_max = {};    // of the upper end
  PcieLink possible = {};    // of both together; the device's where the slot's is unknown
  LinkVerdict verdict = LinkVerdict::kUnknown;

  // What it carries when used: an idle link wakes up. 0 when unknown.
  double gigabytes_per_second() const noexcept;
};

// Has this node a link above it? Root ports and downstream ports have theirs below, host bridges
// none.
bool has_link_above(const Node& node) noexcept;

// A virtual function has the link of its physical one.
LinkState link_above(const Graph& graph, NodeIndex node);

// The functions in the slot of a device, itself included, in their order: they share the slot's
// link. Without virtual ones.
std::vector<NodeIndex> slot_of(const Graph& graph, NodeIndex device);

// Each link above a GPU, an RDMA NIC, or a bridge over one of them, once, from the top down. A
// fault of a slot is reported for its first function only.
std::vector<LinkState> links_in_use(const Graph& graph);
// The same, but only these NICs count.
std::vector<LinkState> links_in_use(const Graph& graph, std::span<const NodeIndex> nics);

// "Gen4 x8, could be Gen5 x16", and "reseat the card, look at the riser and the BIOS", which is
// empty if nothing can be done.
std::string cause_of(const Graph& graph, const LinkState& link);
std::string fix_of(const Graph& graph, const LinkState& link);
// Both, with a colon in between. For people.
std::string describe(const Graph& graph, const LinkState& link);

}  // namespace beeline::topology
