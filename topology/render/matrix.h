// SPDX-License-Identifier: Apache-2.0
//
// Distances as a table, in the shape of `nvidia-smi topo -m`.
#pragma once

#include <string>

#include "topology/assignment.h"
#include "topology/render/table.h"

namespace beeline::topology {

// All GPUs and RDMA NICs, and a legend. One line if there is no GPU and no NIC.
std::string matrix_text(const Graph& graph, std::size_t width = kAnyWidth);

// Only the distance of each NIC from each GPU, a line for each NIC; a star marks NICs in use.
std::string gpu_nic_matrix_text(const Graph& graph, const Assignment& assignment,
                                std::size_t width = kAnyWidth);

}  // namespace beeline::topology
