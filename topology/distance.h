// SPDX-License-Identifier: Apache-2.0
//
// How far two devices are from each other, in the terms of `nvidia-smi topo -m`.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/graph.h"

namespace beeline::topology {

// Nearest first. meaning() explains each.
enum class Distance : std::uint8_t { kLoc, kPix, kPxb, kPhb, kNode, kSys };

const char* to_string(Distance distance) noexcept;  // "PIX"
const char* meaning(Distance distance) noexcept;

// NCCL's name for the distance. NCCL does not distinguish host bridges of a processor: NODE is PHB.
const char* nccl_name(Distance distance) noexcept;

// Whether no GPU and no NIC is below a bridge, as in many virtual machines. Distances then mean
// nothing.
bool has_hidden_tree(const Graph& graph);

// The location of every node in the tree, so that a distance needs only a few comparisons.
//
// Two devices are as near as the smallest thing that contains both:
//
// - PIX: both are directly below the same switch, or below the same root port without a switch.
// - PXB: both are below the same root port, through more than one switch.
// - PHB: both are below the same host bridge, or directly on its root bus.
// - NODE: their host bridges belong to the same NUMA node. If the NUMA node is unknown, and no NUMA
//   node of the machine is known: to the same package, or machine if no package is known.
// - SYS: anything else, also if the NUMA nodes are unknown.
//
// Hence the devices nearest to a device are those in the smallest such thing that contains any, and
// the sets of nearest devices of two devices are equal, one within the other, or disjoint.
class Distances {
 public:
  explicit Distances(const Graph& graph);

  Distance between(NodeIndex a, NodeIndex b) const noexcept;

  // For sorting by distance, where SYS within one package is nearer than SYS across packages.
  int rank(NodeIndex a, NodeIndex b) const noexcept;

 private:
  struct Location {
    NodeIndex nearest_switch = kNoNode;  // its upstream port; or a bridge without a switch
    NodeIndex root_port = kNoNode;       // the topmost bridge
    NodeIndex host_bridge = kNoNode;
    NodeIndex memory = kNoNode;  // the NUMA node, or its substitute
    NodeIndex package = kNoNode;
  };
  static Location locate(const Graph& graph, NodeIndex index, const Location& parent);
  void infer_memory(const Graph& graph);

  std::vector<Location> locations_;
};

}  // namespace beeline::topology
