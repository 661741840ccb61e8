// SPDX-License-Identifier: Apache-2.0
//
// How the PCIe link above a device is doing: what it carries now, and what it should.
#pragma once

#include <cstdint>
#include <string>

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

// "Gen4 x8, could be Gen5 x16: reseat the card, look at the riser and the BIOS". For people.
std::string describe(const Graph& graph, const LinkState& link);

}  // namespace beeline::topology
