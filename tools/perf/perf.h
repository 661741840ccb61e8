// SPDX-License-Identifier: Apache-2.0
//
// `beeline perf` calls any NCCL network plugin as NCCL would, without NCCL.
#pragma once

#include "tools/perf/options.h"

namespace beeline::perf {

// Returns the exit status.
int run(Options options);

}  // namespace beeline::perf
