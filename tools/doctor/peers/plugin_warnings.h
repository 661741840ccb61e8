// SPDX-License-Identifier: Apache-2.0
//
// The warnings that the plugin writes into NCCL's log, to explain why a rail cannot be used.
#pragma once

#include <string>
#include <vector>

#include "include/nccl/net_common.h"

namespace beeline::doctor {

// The logger for the plugin.
void keep_warning(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                  const char* format, ...) __attribute__((format(printf, 5, 6)));

// The warnings since the last call, the oldest first.
std::vector<std::string> take_warnings();

}  // namespace beeline::doctor
