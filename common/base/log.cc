// SPDX-License-Identifier: Apache-2.0
//
// Each line is formatted here, on the stack, and is passed to NCCL as the argument of "%s", so that
// it does not matter how NCCL treats formats.
#include "common/base/log.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace beeline {
namespace {

constexpr char kLinePrefix[] = "NET/Beeline : ";
constexpr char kCut[] = "...";

// The process's logger. It is initialized before any code runs and is never destroyed, because any
// code may log at any time.
constinit std::atomic<LogSink> current_sink{nullptr};

}  // namespace

void set_log_sink(LogSink sink) noexcept { current_sink.store(sink, std::memory_order_release); }

LogSink log_sink() noexcept { return current_sink.load(std::memory_order_acquire); }

void log_line(const LogSite& site, const char* fmt, ...) noexcept {
  const LogSink sink = log_sink();
  if (sink == nullptr) return;
  const int errno_before = errno;

  char line[kLogLineBytes];
  constexpr size_t kPrefixBytes = sizeof(kLinePrefix) - 1;
  std::memcpy(line, kLinePrefix, sizeof(kLinePrefix));
  constexpr size_t kRoom = sizeof(line) - kPrefixBytes;
  va_list arguments;
  va_start(arguments, fmt);
  const int wanted = std::vsnprintf(line + kPrefixBytes, kRoom, fmt, arguments);
  va_end(arguments);
  if (wanted >= 0 && static_cast<size_t>(wanted) >= kRoom) {
    std::memcpy(line + sizeof(line) - sizeof(kCut), kCut, sizeof(kCut));
  }

  sink(static_cast<int>(site.level), site.flags, site.file, site.line, "%s", line);
  errno = errno_before;
}

}  // namespace beeline
