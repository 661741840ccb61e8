// SPDX-License-Identifier: Apache-2.0
//
// How far two devices are from each other, in the words of `nvidia-smi topo -m`.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/graph.h"

namespace beeline::topology {

// Nearest first. What each means is written for people in meaning().
enum class Distance : std::uint8_t { kLoc, kPix, kPxb, kPhb, kNode, kSys };

const char* to_string(Distance distance) noexcept;  // "PIX"
const char* meaning(Distance distance) noexcept;

// The word NCCL has for it: it knows no host bridges, only processors, so NODE is PHB.
const char* nccl_word(Distance distance) noexcept;

// Whether no GPU and no NIC is below a bridge, as in virtual machines. Distances are meaningless
// then.
bool hides_its_tree(const Graph& graph);

// Where every node stands, so that a distance is a handful of comparisons.
//
// Each distance is a place that both have in common: the same switch, the same root port, the same
// host bridge, the same NUMA node. Hence what is nearest to a device is everything in the smallest
// place that holds any, and two devices' nearest sets are the same, one within the other, or
// disjoint.
//
// - PIX: below the same switch, by its ports directly; or the same port without a switch.
// - PXB: below the same root port, through more than one switch.
// - PHB: below the same host bridge. Also devices that sit on the root bus itself.
// - NODE: below host bridges of the same NUMA node. Where the NUMA node is unknown: of the same
// package,
//   or machine, if no NUMA node of the machine is known; otherwise SYS, for want of a proof.
// - SYS: anything else.
class Places {
 public:
  explicit Places(const Graph& graph);

  Distance between(NodeIndex a, NodeIndex b) const noexcept;

  // Compares as distances do, and SYS within one package is nearer than SYS across packages.
  int rank(NodeIndex a, NodeIndex b) const noexcept;

 private:
  struct Place {
    NodeIndex nearest_switch = kNoNode;  // its upstream port; or a port that leads to no switch
    NodeIndex root_port = kNoNode;       // the topmost bridge
    NodeIndex host_bridge = kNoNode;
    NodeIndex memory = kNoNode;  // the NUMA node, or what stands for it
    NodeIndex package = kNoNode;
  };
  static Place place_of(const Graph& graph, NodeIndex index, const Place& parent);
  void settle_memory(const Graph& graph);

  std::vector<Place> places_;
};

}  // namespace beeline::topology
