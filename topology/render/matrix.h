// SPDX-License-Identifier: Apache-2.0
//
// Distances as a table, in the shape of `nvidia-smi topo -m`.
#pragma once

#include <string>

#include "topology/assignment.h"

namespace beeline::topology {

// All GPUs and RDMA NICs, and the legend of the words in it. A machine without GPU and NIC gives
// one line that says so.
std::string matrix_text(const Graph& graph);

// Only how far each NIC is from each GPU, a line for each NIC; a star marks those in use.
std::string gpu_nic_matrix_text(const Graph& graph, const Assignment& assignment);

}  // namespace beeline::topology
