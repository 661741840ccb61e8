// SPDX-License-Identifier: Apache-2.0
//
// Assigns NICs to each GPU, and orders the other NICs as standby. The result depends on the machine
// alone, so all processes of a host, and all hosts of the same kind, compute the same one.
//
// The rules, in this order:
// 1. A GPU gets only NICs that NCCL considers best (nccl_choice.h): those with the highest
// bandwidth
//    from GPU to wire, and the nearest of these. See docs/decisions/0017-assignment-as-nccl.md.
// 2. GPUs with the same choice get the same number of NICs. NICs that are left over stay unused: a
//    rank with more rails than its peers could not use them.
// 3. If there are more GPUs than NICs, the numbers of GPUs that the NICs serve differ by one at
// most.
// 4. The second port of an adapter is used after the first ports of the other adapters.
// 5. The NICs are distributed as NCCL does, if NCCL also gives each GPU equally many. Otherwise the
//    order of addresses decides: the first GPU gets the first NICs, and a GPU that gets several
//    keeps the ports of an adapter together.
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
  std::string reason = {};              // a sentence
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
