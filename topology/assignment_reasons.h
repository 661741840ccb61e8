// SPDX-License-Identifier: Apache-2.0
//
// Sentences that explain an assignment: why a GPU got its NICs, and why a NIC serves no GPU.
#pragma once

#include <string>
#include <vector>

#include "topology/distance.h"
#include "topology/graph.h"
#include "topology/nic_group.h"

namespace beeline::topology {

// The result of assign() for one GPU. Numbers are indices into its list of NIC groups.
struct Choice {
  std::vector<std::size_t> best = {};     // to choose from; equally good
  std::vector<std::size_t> as_near = {};  // equally near, but slower; not chosen
  std::vector<std::size_t> nearer = {};   // nearer, but slower; not chosen
  std::vector<std::size_t> taken = {};
  Distance distance = Distance::kSys;  // of the farthest taken
  std::size_t rivals = 0;              // GPUs with the same choice, this one included
  std::size_t most_used = 0;           // GPUs that share the busiest NIC of this one
};

std::string reason_for(const Graph& graph, const std::vector<NicGroup>& groups, NodeIndex gpu,
                       const Choice& choice);

// The reason why a NIC group serves no GPU.
std::string reason_spare(std::size_t group, const std::vector<Choice>& choices);

}  // namespace beeline::topology
