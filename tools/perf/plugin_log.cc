// SPDX-License-Identifier: Apache-2.0
//
// A logger of NCCL's interface has no context argument, so this one has to use globals.
#include "tools/perf/plugin_log.h"

#include <strings.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace beeline::perf {
namespace {

std::atomic<int> own_rank{0};
std::atomic<int> shown_level{NCCL_LOG_WARN};
std::atomic<bool> has_warned{false};

const char* word(ncclDebugLogLevel level) {
  switch (level) {
    case NCCL_LOG_NONE: return "NONE";
    case NCCL_LOG_VERSION: return "VERSION";
    case NCCL_LOG_WARN: return "WARN";
    case NCCL_LOG_INFO: return "INFO";
    case NCCL_LOG_ABORT: return "ABORT";
    case NCCL_LOG_TRACE: return "TRACE";
  }
  return "?";
}

}  // namespace

ncclDebugLogLevel level_of_environment() {
  const char* const wanted = std::getenv("NCCL_DEBUG");
  for (const ncclDebugLogLevel level : {NCCL_LOG_INFO, NCCL_LOG_ABORT, NCCL_LOG_TRACE}) {
    if (wanted != nullptr && ::strcasecmp(wanted, word(level)) == 0) return level;
  }
  return NCCL_LOG_WARN;
}

void set_plugin_log(int rank, ncclDebugLogLevel level) {
  own_rank = rank;
  shown_level = level;
}

bool has_plugin_warned() { return has_warned; }

void plugin_log(ncclDebugLogLevel level, unsigned long /*flags*/, const char* /*file*/,
                int /*line*/, const char* format, ...) {
  if (level > shown_level) return;
  if (level == NCCL_LOG_WARN) has_warned = true;
  std::array<char, 2048> text;  // NOLINT: vsnprintf writes it
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  // A single write, so that the lines of several threads and ranks do not mix.
  std::fprintf(stderr, "rank %d: NET %s %s\n", own_rank.load(), word(level), text.data());
}

}  // namespace beeline::perf
