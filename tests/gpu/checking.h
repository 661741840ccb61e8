// SPDX-License-Identifier: Apache-2.0
//
// The two ways to judge NCCL: by runs of our own, or by the logs that another program left behind.
#pragma once

#include "tests/gpu/options.h"

namespace beeline::gpu {

// Whether all went well, which is also said.
bool check_by_runs(const Options& options, const std::string& log_folder);
bool check_by_logs(const Options& options);

}  // namespace beeline::gpu
