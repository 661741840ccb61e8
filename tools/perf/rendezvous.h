// SPDX-License-Identifier: Apache-2.0
//
// Connects ranks that were started separately to rank 0, which rendezvous_socket.h finds.
#pragma once

#include <vector>

#include "tools/perf/coordinator.h"

namespace beeline::perf {

// Rank 0's side: waits for all other ranks. The result is indexed by rank; entry 0 is empty.
Outcome<std::vector<Member>> gather_members(const Options& options);

// The side of all other ranks: returns when all ranks have connected.
Outcome<FrameSocket> join_coordinator(const Options& options);

}  // namespace beeline::perf
