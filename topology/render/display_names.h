// SPDX-License-Identifier: Apache-2.0
//
// Short names for the heads of tables and the boxes of pictures.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "topology/graph.h"

namespace beeline::topology {

// By node: "GPU0" by the number that CUDA or HIP has for it, or in the order of Graph::gpus(), an
// RDMA NIC's own name ("NIC3" where it has none), and for anything else its label.
class DisplayNames {
 public:
  explicit DisplayNames(const Graph& graph);

  const std::string& operator[](NodeIndex node) const noexcept { return names_[node]; }
  std::string list(const std::vector<NodeIndex>& nodes) const;  // "mlx5_0, mlx5_1"
  // Places in Graph::gpus(), in the order of the numbers in their names.
  const std::vector<std::size_t>& gpu_order() const noexcept { return gpu_order_; }

 private:
  std::vector<std::string> names_;
  std::vector<std::size_t> gpu_order_;
};

// GPUs by their numbers, then RDMA NICs.
std::vector<NodeIndex> shown_devices(const Graph& graph, const DisplayNames& names);

}  // namespace beeline::topology
