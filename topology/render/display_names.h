// SPDX-License-Identifier: Apache-2.0
//
// Short names of devices for tables and pictures.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "topology/graph.h"

namespace beeline::topology {

// By node: "GPU0" with the number of CUDA or HIP, or else by the order of Graph::gpus(); the name
// of an RDMA NIC ("NIC3" if it has none); for other nodes the label.
class DisplayNames {
 public:
  explicit DisplayNames(const Graph& graph);

  const std::string& operator[](NodeIndex node) const noexcept { return names_[node]; }
  std::string list(const std::vector<NodeIndex>& nodes) const;  // "mlx5_0, mlx5_1"
  // Indices into Graph::gpus(), in the order of the numbers in their names.
  const std::vector<std::size_t>& gpu_order() const noexcept { return gpu_order_; }

 private:
  std::vector<std::string> names_;
  std::vector<std::size_t> gpu_order_;
};

// GPUs by their numbers, then RDMA NICs.
std::vector<NodeIndex> shown_devices(const Graph& graph, const DisplayNames& names);

}  // namespace beeline::topology
