// SPDX-License-Identifier: Apache-2.0
//
// Replaces NCCL's logger, and keeps the lines that the plugin logs in this process, from any
// thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "include/nccl/net_common.h"

namespace beeline::test {

struct LogLine {
  ncclDebugLogLevel level;
  std::string text;
};

// The function to give to init.
void keep_log_line(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                   const char* format, ...) __attribute__((format(printf, 5, 6)));

std::vector<LogLine> log_lines();
// The lines of this level that contain every part, ignoring case.
std::vector<std::string> find_log_lines(ncclDebugLogLevel level,
                                        const std::vector<std::string>& parts = {});
inline bool log_has(ncclDebugLogLevel level, const std::vector<std::string>& parts) {
  return !find_log_lines(level, parts).empty();
}
void clear_log();
// The whole log, or its last 6000 bytes.
std::string log_text();

}  // namespace beeline::test
