// SPDX-License-Identifier: Apache-2.0
//
// One rank, which is a process of its own that was forked before any use of CUDA.
#pragma once

#include <vector>

#include "tools/gpu_check/cases.h"
#include "tools/gpu_check/environment.h"
#include "tools/gpu_check/report.h"

namespace beeline::gpu {

struct Run {
  RunSettings settings;
  int ranks;
  int rounds;  // how often each case is repeated; odd rounds work in place where that is possible
  std::vector<Case> cases;
};

// Reports every step before it begins, so that the cause of a hang is known. Ends with kDone or
// kFailed.
void run_rank(const Run& run, int rank, const ReportSocket& socket);

// Reports what this machine has (kFacts), or what it lacks (kUnavailable).
void probe(const ReportSocket& socket);

}  // namespace beeline::gpu
