// SPDX-License-Identifier: Apache-2.0
//
// The assignment of NICs to GPUs as a table.
#pragma once

#include <string>

#include "topology/assignment.h"
#include "topology/render/table.h"

namespace beeline::topology {

// A line for each GPU: its address, its NICs, their distance, and the slowest link between them.
// Then the reasons, once for all GPUs with the same reason, NCCL's own choice, and the NICs that no
// GPU uses. Only the table keeps to `width`.
std::string assignment_text(const Graph& graph, const Assignment& assignment,
                            std::size_t width = kAnyWidth);

// The standby NICs of each GPU, the best first.
std::string standby_text(const Graph& graph, const Assignment& assignment);

// export NCCL_IB_HCA="=mlx5_0,mlx5_1": exactly the NICs in use, quoted because zsh expands a word
// that begins with "=". Empty if no NIC is in use, or if one has no RDMA name or a name that would
// mean something to a shell.
std::string nccl_ib_hca(const Graph& graph, const Assignment& assignment);

}  // namespace beeline::topology
