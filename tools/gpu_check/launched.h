// SPDX-License-Identifier: Apache-2.0
//
// Ranks that mpirun, srun or torchrun starts. The launcher starts this program, which sets the
// environment of the rank and then execs the wanted program.
#pragma once

#include "common/base/problem.h"
#include "tools/gpu_check/options.h"

namespace beeline::gpu {

// Returns only if it fails.
Outcome<void> become_rank(const Options& options);

}  // namespace beeline::gpu
