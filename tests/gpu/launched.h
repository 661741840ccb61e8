// SPDX-License-Identifier: Apache-2.0
//
// Ranks that somebody else starts: mpirun, srun or torchrun. This program goes between them and the
// program that is wanted, and gives each rank its environment.
#pragma once

#include "tests/gpu/options.h"
#include "tests/gpu/outcome.h"

namespace beeline::gpu {

// Returns only when it cannot be.
Outcome<Done> become_rank(const Options& options);

}  // namespace beeline::gpu
