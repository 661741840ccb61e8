// SPDX-License-Identifier: Apache-2.0
//
// `beeline topo --check`, for scripts that check a node before a job runs on it.
#pragma once

#include "topology/assignment.h"

namespace beeline::topo {

// Prints the problems on stdout. Returns the exit status: 0 if there are none, 1 if there are some,
// kUsage if that is unknown, because there is no GPU or no RDMA NIC, or because the possible speed
// of every link is unknown.
int check(const topology::Graph& graph, const topology::Assignment& assignment);

}  // namespace beeline::topo
