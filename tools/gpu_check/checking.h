// SPDX-License-Identifier: Apache-2.0
//
// The two ways to check NCCL: by running operations, or by the logs of another program's run.
#pragma once

#include "tools/gpu_check/options.h"

namespace beeline::gpu {

// Print the verdict, and return whether all was right.
bool check_by_runs(const Options& options, const std::string& log_folder);
bool check_by_logs(const Options& options);

}  // namespace beeline::gpu
