// SPDX-License-Identifier: Apache-2.0
//
// Why a GPU got its NICs, and why a NIC serves nobody: sentences for people.
#pragma once

#include <string>
#include <vector>

#include "topology/distance.h"
#include "topology/graph.h"
#include "topology/nic_unit.h"

namespace beeline::topology {

// What assign() knows of one GPU when it is done. Numbers are places in its list of units.
struct Choice {
  std::vector<std::size_t> best = {};     // to choose from: equally good
  std::vector<std::size_t> as_near = {};  // slower, and left out
  std::vector<std::size_t> nearer = {};   // likewise
  std::vector<std::size_t> taken = {};
  Distance distance = Distance::kSys;  // of the farthest taken
  std::size_t rivals = 0;              // GPUs with this one's choice, itself included
  std::size_t most_used = 0;           // GPUs on the busiest of the taken
};

std::string reason_for(const Graph& graph, const std::vector<NicUnit>& units, NodeIndex gpu,
                       const Choice& choice);

// Of a unit's lead that serves no GPU.
std::string reason_spare(std::size_t unit, const std::vector<Choice>& choices);

}  // namespace beeline::topology
