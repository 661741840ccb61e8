// SPDX-License-Identifier: Apache-2.0
//
// The state of the PCIe link above a device: its current speed, and the speed that it should have.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topology/graph.h"

namespace beeline::topology {

enum class LinkVerdict : std::uint8_t {
  kUnknown,     // too little is known
  kFull,        // the maximum of both ends
  kIdle,        // a GPU's link at a lower rate with all its lanes, probably to save power
  kDegraded,    // below the maximum of both ends: a badly seated card, a riser, a slot, a BIOS
                // setting
  kNarrowSlot,  // the slot has fewer lanes than the device
  kBelowPorts,  // less bandwidth than the network ports of the NIC
};
const char* to_string(LinkVerdict verdict) noexcept;
bool is_slow(LinkVerdict verdict) noexcept;  // kDegraded, kNarrowSlot, kBelowPorts

struct LinkState {
  NodeIndex node = kNoNode;  // at the lower end of the link
  PcieLink now = {};
  PcieLink device_max = {};  // of the lower end
  PcieLink slot_max = {};    // of the upper end
  PcieLink possible = {};    // of both ends; of the device if the slot's is unknown
  LinkVerdict verdict = LinkVerdict::kUnknown;

  // The bandwidth under load, when a link leaves its power-saving rate. 0 if unknown.
  double gigabytes_per_second() const noexcept;
};

// Root ports and downstream ports have their link below them, host bridges have none.
bool has_link_above(const Node& node) noexcept;

// A virtual function has the link of its physical one.
LinkState link_above(const Graph& graph, NodeIndex node);

// The physical functions in the slot of a device, itself included, in their order. They share the
// link of the slot.
std::vector<NodeIndex> slot_of(const Graph& graph, NodeIndex device);

// Each link above a GPU, an RDMA NIC, or a bridge above one of them, from the top down. A slow link
// of a slot is listed for the slot's first function only.
std::vector<LinkState> links_in_use(const Graph& graph);
// The same for the GPUs and only these NICs.
std::vector<LinkState> links_in_use(const Graph& graph, std::span<const NodeIndex> nics);

// "Gen4 x8, could be Gen5 x16", and "reseat the card, look at the riser and the BIOS". The fix is
// empty if nothing is wrong.
std::string cause_of(const Graph& graph, const LinkState& link);
std::string fix_of(const Graph& graph, const LinkState& link);
// The cause and the fix, with a colon in between.
std::string describe(const Graph& graph, const LinkState& link);

}  // namespace beeline::topology
