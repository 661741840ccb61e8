// SPDX-License-Identifier: Apache-2.0
//
// NICs that share their wires count as one when work is shared out: a physical function and its
// virtual functions, the members of a bond.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topology/graph.h"

namespace beeline::topology {

struct NicUnit {
  // Who stands for all: the first. A physical function comes before its virtual ones.
  NodeIndex lead = kNoNode;
  std::vector<NodeIndex> members = {};  // in the order of Graph::nics(), the lead included
  NodeIndex adapter = kNoNode;  // the first unit's lead on the same card: same domain, bus and
                                // device. The ports of an adapter share its slot
};

// In the order of their leads in Graph::nics(). What is no RDMA NIC is left out.
std::vector<NicUnit> nic_units(const Graph& graph, std::span<const NodeIndex> nics);

// "the same wire as mlx5_2, mlx5_3"; empty for a NIC by itself.
std::string describe(const Graph& graph, const NicUnit& unit);

}  // namespace beeline::topology
