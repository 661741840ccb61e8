// SPDX-License-Identifier: Apache-2.0
//
// Starts the ranks of one run, listens to them, and ends them when they are done, when one fails or
// when the time is up. Whatever happens is a sentence about a rank and what it did last.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/gpu/outcome.h"
#include "tests/gpu/rank.h"

namespace beeline::gpu {

struct CaseResult {
  std::uint32_t reports = 0;
  std::uint64_t wrong = 0;  // of all ranks and rounds
  std::string first_wrong;
  // The shortest of all ranks and rounds: the rank that came last waited for nobody.
  double seconds = std::numeric_limits<double>::infinity();
};

using OnCase = std::function<void(const Case&, const CaseResult&)>;

// Calls back for each case that all ranks have reported. Returns what went wrong; wrong elements
// are left to the caller.
std::vector<std::string> run_team(const Run& run, std::chrono::seconds limit,
                                  const OnCase& on_case);

// What this machine has (kFacts) or lacks (kUnavailable), found out in a process of its own. Fails
// if that process crashes or hangs, which is another thing than a lack.
Outcome<Report> probe_machine(std::chrono::seconds limit);

}  // namespace beeline::gpu
