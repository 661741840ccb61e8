// SPDX-License-Identifier: Apache-2.0
//
// How ranks on several machines find rank 0: at HOST:PORT, or through a file in which it leaves its
// address.
#pragma once

#include <string>
#include <vector>

#include "tools/perf/coordinator.h"

namespace beeline::perf {

// Rank 0's side: waits for all others. Members 1 to N-1, by rank; member 0 is left empty.
tools::Outcome<std::vector<Member>> gather_members(const Options& options);

// Any other rank's side.
tools::Outcome<Line> join_coordinator(const Options& options);

// Whether it can be one: HOST:PORT, or the path of a file.
tools::Outcome<bool> check_rendezvous(const std::string& rendezvous);

}  // namespace beeline::perf
