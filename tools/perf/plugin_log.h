// SPDX-License-Identifier: Apache-2.0
//
// The logger for the plugin. It prints "rank 1: NET WARN ..." on stderr.
#pragma once

#include "include/nccl/net_common.h"

namespace beeline::perf {

// The level of NCCL_DEBUG, parsed as NCCL does, but at least WARN.
ncclDebugLogLevel level_of_environment();

// Only lines up to `level` are shown. Must be called before the plugin's init.
void set_plugin_log(int rank, ncclDebugLogLevel level);

// Whether a warning of the plugin was printed.
bool has_plugin_warned();

void plugin_log(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                const char* format, ...) __attribute__((format(printf, 5, 6)));

}  // namespace beeline::perf
