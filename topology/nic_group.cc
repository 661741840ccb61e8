// SPDX-License-Identifier: Apache-2.0
#include "topology/nic_group.h"

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

std::vector<NicGroup> nic_groups(const Graph& graph, std::span<const NodeIndex> nics) {
  const std::set<NodeIndex> wanted(nics.begin(), nics.end());
  std::map<std::string, std::size_t> by_bond;
  std::map<NodeIndex, std::size_t> by_physical;
  std::vector<NicGroup> groups;
  for (const NodeIndex nic : graph.nics()) {
    if (!wanted.contains(nic)) continue;
    const std::string& bond = bond_of(graph, nic);
    const NodeIndex physical = physical_of(graph, nic);
    const std::size_t next = groups.size();
    const std::size_t at = bond.empty() ? by_physical.try_emplace(physical, next).first->second
                                        : by_bond.try_emplace(bond, next).first->second;
    if (at == next) groups.push_back({.lead = nic});
    groups[at].members.push_back(nic);
  }

  std::map<Card, NodeIndex> cards;
  for (NicGroup& group : groups) {
    const NodeIndex physical = physical_of(graph, group.lead);
    group.adapter = group.lead;
    if (const auto& pci = graph[physical].pci) {
      group.adapter = cards.try_emplace(card_of(*pci), group.lead).first->second;
    }
  }
  return groups;
}

std::string describe(const Graph& graph, const NicGroup& group) {
  std::string others;
  for (const NodeIndex member : group.members) {
    if (member == group.lead) continue;
    others += (others.empty() ? "has the same ports or bond as " : ", ") + label(graph[member]);
  }
  return others;
}

}  // namespace beeline::topology
