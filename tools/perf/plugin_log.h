// SPDX-License-Identifier: Apache-2.0
//
// The logger that a plugin gets from us: "rank 1: NET WARN ..." on stderr.
#pragma once

#include "include/nccl/net_common.h"

namespace beeline::perf {

// The level of NCCL_DEBUG, parsed as NCCL does; but warnings are shown in any case.
ncclDebugLogLevel level_of_environment();

// Lines up to `level` are shown. To be called before the plugin's init.
void set_plugin_log(int rank, ncclDebugLogLevel level);

void plugin_log(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                const char* format, ...) __attribute__((format(printf, 5, 6)));

}  // namespace beeline::perf
