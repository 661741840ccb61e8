// SPDX-License-Identifier: Apache-2.0
//
// Which NICs are one.
#include "topology/nic_unit.h"

#include <map>
#include <set>
#include <tuple>

namespace beeline::topology {
namespace {

NodeIndex physical_of(const Graph& graph, NodeIndex nic) noexcept {
  return graph[nic].physical_function == kNoNode ? nic : graph[nic].physical_function;
}

const std::string& bond_of(const Graph& graph, NodeIndex nic) noexcept {
  const std::string& own = graph[nic].bond;
  return own.empty() ? graph[physical_of(graph, nic)].bond : own;
}

using Card = std::tuple<std::uint32_t, std::uint8_t, std::uint8_t>;

Card card_of(const PciAddress& address) noexcept {
  return {address.domain, address.bus, address.device};
}

}  // namespace

std::vector<NicUnit> nic_units(const Graph& graph, std::span<const NodeIndex> nics) {
  const std::set<NodeIndex> wanted(nics.begin(), nics.end());
  std::map<std::string, std::size_t> by_bond;
  std::map<NodeIndex, std::size_t> by_physical;
  std::vector<NicUnit> units;
  for (const NodeIndex nic : graph.nics()) {
    if (!wanted.contains(nic)) continue;
    const std::string& bond = bond_of(graph, nic);
    const NodeIndex physical = physical_of(graph, nic);
    const std::size_t next = units.size();
    const std::size_t at = bond.empty() ? by_physical.try_emplace(physical, next).first->second
                                        : by_bond.try_emplace(bond, next).first->second;
    if (at == next) units.push_back({.lead = nic});
    units[at].members.push_back(nic);
  }

  std::map<Card, NodeIndex> cards;
  for (NicUnit& unit : units) {
    const NodeIndex physical = physical_of(graph, unit.lead);
    unit.adapter = unit.lead;
    if (const auto& pci = graph[physical].pci) {
      unit.adapter = cards.try_emplace(card_of(*pci), unit.lead).first->second;
    }
  }
  return units;
}

std::string describe(const Graph& graph, const NicUnit& unit) {
  std::string others;
  for (const NodeIndex member : unit.members) {
    if (member == unit.lead) continue;
    others += (others.empty() ? "has the same ports or bond as " : ", ") + label(graph[member]);
  }
  return others;
}

}  // namespace beeline::topology
