// SPDX-License-Identifier: Apache-2.0
//
// The paths from GPUs to network ports as NCCL computes them: the type of each, and its bandwidth.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "topology/graph.h"
#include "topology/nccl_choice.h"

namespace beeline::topology {

// A port of a NIC. For NCCL each port is a device of its own.
struct NcclNet {
  NodeIndex nic = kNoNode;
  float bandwidth = 0;  // GB/s on the wire
};

// The ports that NCCL would be offered, in its order: processor by processor, from the top of the
// tree to its leaves. An unknown speed counts as the highest known speed of the machine, so that no
// NIC is called slow because data is missing.
std::vector<NcclNet> nccl_nets(const Graph& graph, std::span<const NodeIndex> nics);

// All NICs that are not known to be down.
std::vector<NodeIndex> nics_not_down(const Graph& graph);

struct NcclPath {
  float bandwidth = 0;
  NcclPathType type = NcclPathType::kSys;
};

// Lifecycle: a value; refers to the graph. Threads: any, it does not change.
class NcclPaths {
 public:
  explicit NcclPaths(const Graph& graph);

  // The path without GPUs in between.
  NcclPath between(NodeIndex gpu, const NcclNet& net) const;

  // Whether the path from the GPU to its processor uses C2C.
  bool has_c2c(NodeIndex gpu) const noexcept { return c2c_[gpu] > 0; }

 private:
  struct Location {
    NodeIndex nearest_switch = kNoNode;
    NodeIndex top_bridge = kNoNode;
    std::size_t depth = 0;
  };
  NcclPathType path_between(NodeIndex gpu, NodeIndex nic) const noexcept;

  const Graph& graph_;
  std::vector<Location> locations_;
  std::vector<float> above_;      // by node: what the link above it carries
  std::vector<float> c2c_;        // by node: what C2C carries; 0: there is none
  std::vector<float> inter_cpu_;  // by node
};

}  // namespace beeline::topology
