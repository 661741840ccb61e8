// SPDX-License-Identifier: Apache-2.0
//
// One rank: a process of its own, which was forked before anything of CUDA was touched.
#pragma once

#include <vector>

#include "tests/gpu/cases.h"
#include "tests/gpu/environment.h"
#include "tests/gpu/report.h"

namespace beeline::gpu {

struct Run {
  RunSettings settings;
  int ranks;
  int rounds;  // how often each case is repeated; odd rounds work in place where that is possible
  std::vector<Case> cases;
};

// Reports every step before it takes it, so that a hang has a name. Ends with kDone or kFailed.
void run_rank(const Run& run, int rank, const Line& line);

// Says what this machine has (kFacts), or what it lacks (kUnavailable).
void probe(const Line& line);

}  // namespace beeline::gpu
