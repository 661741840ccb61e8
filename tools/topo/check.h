// SPDX-License-Identifier: Apache-2.0
//
// `beeline topo --check`, for scripts that look at a node before jobs do.
#pragma once

#include "topology/assignment.h"

namespace beeline::topo {

// Tells on stdout what is wrong. Returns the exit status: 0 where nothing is wrong, 1 where
// something is, kUsage where that cannot be told: there is no GPU, or no RDMA NIC, or of no link
// it is known how fast it could be.
int check(const topology::Graph& graph, const topology::Assignment& assignment);

}  // namespace beeline::topo
