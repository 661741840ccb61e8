// SPDX-License-Identifier: Apache-2.0
//
// The distances of all GPUs and RDMA NICs as a table, in the shape of `nvidia-smi topo -m`.
#pragma once

#include <string>

#include "topology/graph.h"

namespace beeline::topology {

// The table and the legend of the words in it. A machine without GPU and NIC gives one line that
// says so.
std::string matrix_text(const Graph& graph);

}  // namespace beeline::topology
