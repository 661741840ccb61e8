// SPDX-License-Identifier: Apache-2.0
//
// `beeline topo --check`, for scripts that check a node before jobs run on it.
#pragma once

#include "topology/assignment.h"

namespace beeline::topo {

// Prints on stdout what is wrong. Returns the exit status: 0 if nothing is wrong, 1 if something
// is, kUsage if that is unknown, because there is no GPU or no RDMA NIC, or because the possible
// speed is known for no link.
int check(const topology::Graph& graph, const topology::Assignment& assignment);

}  // namespace beeline::topo
