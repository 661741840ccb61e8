// SPDX-License-Identifier: Apache-2.0
//
// Which NICs a GPU should use, why, and which ones next if they fail. Depends on the machine alone,
// so every process of a host, and every host of a kind, comes to the same answer.
//
// The rules, in their order:
// 1. A GPU gets NICs that NCCL holds for best (nccl_choice.h): with the highest bandwidth from GPU
// to
//    wire, and the nearest of those. See docs/decisions/0017-assignment-as-nccl.md.
// 2. GPUs with the same choice get equally many, as many as there are for each. A NIC that is over
//    stays over: a rank with more rails than its peers could not use them.
// 3. Where GPUs are more than NICs, each NIC serves equally many, within one.
// 4. An adapter's second port is taken after the other adapters' first ones.
// 5. What was taken is dealt as NCCL does, where NCCL shares it out evenly too. Elsewhere in the
// order
//    of addresses: the first GPU gets the first NICs, and an adapter's ports stay together where a
//    GPU gets several.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "topology/distance.h"
#include "topology/graph.h"

namespace beeline::topology {

struct AssignOptions {
  // The NICs that may be used; by default all of the graph that are not known to be down.
  std::optional<std::vector<NodeIndex>> nics = {};
  std::size_t max_nics_per_gpu = 0;  // 0: no limit
};

struct GpuAssignment {
  NodeIndex gpu = kNoNode;
  std::vector<NodeIndex> nics = {};     // in the order of addresses; empty if there is no NIC
  Distance distance = Distance::kSys;   // of the farthest of them
  std::vector<NodeIndex> standby = {};  // all other NICs, the best first
  std::string reason = {};              // for people
};

struct SpareNic {
  NodeIndex nic = kNoNode;
  std::string reason = {};
};

struct Assignment {
  std::vector<GpuAssignment> gpus = {};  // in the order of Graph::gpus()
  std::vector<SpareNic> spares = {};     // NICs that no GPU uses, in the order of Graph::nics()
};

Assignment assign(const Graph& graph, const AssignOptions& options = {});

}  // namespace beeline::topology
