// SPDX-License-Identifier: Apache-2.0
//
// How ranks on several machines find rank 0 (meeting_place.h) and become one run.
#pragma once

#include <vector>

#include "tools/perf/coordinator.h"

namespace beeline::perf {

// Rank 0's side: waits for all others. Members 1 to N-1, by rank; member 0 is left empty.
Outcome<std::vector<Member>> gather_members(const Options& options);

// Any other rank's side: returns once all ranks have met.
Outcome<Line> join_coordinator(const Options& options);

}  // namespace beeline::perf
