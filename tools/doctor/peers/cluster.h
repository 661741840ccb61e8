// SPDX-License-Identifier: Apache-2.0
//
// Finds the doctors that srun, mpirun or torchrun has started, one or more on each host.
#pragma once

#include <string>
#include <vector>

#include "common/base/launchers.h"
#include "tools/doctor/peers/coordinator.h"

namespace beeline::doctor {

// The error names the variables that are looked for.
Outcome<LaunchedAs> place_of_this_process();

// Rank 0: waits for all others, and returns one doctor for each host, this one first. `rendezvous`
// is a file in a folder that all hosts share, or HOST:PORT of rank 0, as for `beeline perf`.
Outcome<std::vector<Peer>> gather_cluster(const std::string& rendezvous, const LaunchedAs& place);
// The other ranks. Returns the exit status.
int join_cluster(const std::string& rendezvous, const LaunchedAs& place);

}  // namespace beeline::doctor
