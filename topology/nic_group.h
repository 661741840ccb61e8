// SPDX-License-Identifier: Apache-2.0
//
// NICs with common network ports count as one group when NICs are assigned to GPUs: a physical
// function and its virtual functions, or the members of a bond.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topology/graph.h"

namespace beeline::topology {

struct NicGroup {
  // The first member, which represents the group. A physical function comes before its virtual
  // ones.
  NodeIndex lead = kNoNode;
  std::vector<NodeIndex> members = {};  // in the order of Graph::nics(), the lead included
  // The lead of the first group on the same card (same PCI domain, bus and device). The ports of an
  // adapter share its slot.
  NodeIndex adapter = kNoNode;
};

// In the order of their leads in Graph::nics(). Devices that are not RDMA NICs are omitted.
std::vector<NicGroup> nic_groups(const Graph& graph, std::span<const NodeIndex> nics);

// "has the same ports or bond as mlx5_2, mlx5_3"; empty for a single NIC.
std::string describe(const Graph& graph, const NicGroup& group);

}  // namespace beeline::topology
