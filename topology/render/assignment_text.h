// SPDX-License-Identifier: Apache-2.0
//
// Which NIC for which GPU, as lines.
#pragma once

#include <string>

#include "topology/assignment.h"

namespace beeline::topology {

// A line for each GPU: its address, its NICs, how far they are, the slowest link on the way. Then
// why, once for all GPUs with the same reason, what NCCL takes of itself, and the NICs that nobody
// uses.
std::string assignment_text(const Graph& graph, const Assignment& assignment);

// By GPU the NICs that stand by, the best first.
std::string standby_text(const Graph& graph, const Assignment& assignment);

// "export NCCL_IB_HCA==mlx5_0,mlx5_1": exactly the NICs in use. Empty where no NIC is in use, or
// one has no RDMA name or a name that a shell would not take as it is.
std::string nccl_ib_hca(const Graph& graph, const Assignment& assignment);

}  // namespace beeline::topology
