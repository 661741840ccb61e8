// SPDX-License-Identifier: Apache-2.0
//
// Starts the ranks of one run, receives their reports, and ends them when they are done, when one
// fails or when the time is up. Each fault is a text that names a rank and its last step.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "tools/gpu_check/rank.h"

namespace beeline::gpu {

struct CaseResult {
  std::uint32_t reports = 0;
  std::uint64_t wrong = 0;  // of all ranks and rounds
  std::string first_wrong;
  // The shortest time of all ranks and rounds: the last rank to start waits for no other.
  double seconds = std::numeric_limits<double>::infinity();
};

using OnCase = std::function<void(const Case&, const CaseResult&)>;

// Calls back for each case that all ranks have reported. Returns the faults, except wrong elements,
// which are left to the caller.
std::vector<std::string> run_team(const Run& run, std::chrono::seconds limit,
                                  const OnCase& on_case);

// Finds out in a process of its own what this machine has (kFacts) or lacks (kUnavailable). Fails
// if that process crashes or hangs.
Outcome<Report> probe_machine(std::chrono::seconds limit);

}  // namespace beeline::gpu
