// SPDX-License-Identifier: Apache-2.0
//
// Logging through NCCL's logger, with printf formats.
// CONTRIBUTING.md says which line has which level. TRACE is compiled only with the build option
// `trace`. Any thread may log; errno is preserved.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <string_view>

namespace beeline {

// The type of NCCL's logger. Its enumeration is an int here, because this floor does not include
// NCCL's headers.
using LogSink = void (*)(int level, unsigned long flags, const char* file, int line,
                         const char* fmt, ...);

// With null, nothing is logged.
void set_log_sink(LogSink sink) noexcept;
LogSink log_sink() noexcept;

// NCCL's numbers.
enum class LogLevel : int { kWarn = 2, kInfo = 3, kTrace = 5 };

// NCCL's subsystems, by which users filter INFO and TRACE (NCCL_DEBUG_SUBSYS). Combine them with |.
inline constexpr unsigned long kLogInit = 0x1;
inline constexpr unsigned long kLogNet = 0x10;
inline constexpr unsigned long kLogGraph = 0x20;
inline constexpr unsigned long kLogEnv = 0x80;
inline constexpr unsigned long kLogAll = ~0UL;

// Longer lines are truncated and end in "...".
inline constexpr std::size_t kLogLineBytes = 1024;

struct LogSite {
  LogLevel level;
  unsigned long flags;
  const char* file;
  int line;
};

// Writes one line with the plugin's prefix.
[[gnu::format(printf, 2, 3)]] void log_line(const LogSite& site, const char* fmt, ...) noexcept;

// Limits a log line that may be repeated often: it is logged the first few times, then whenever the
// count is a power of two.
class LogLimit {
 public:
  constexpr explicit LogLimit(std::uint64_t first) noexcept : first_(first) {}

  // The number of this occurrence, from 1. 0: do not log it.
  std::uint64_t due() noexcept {
    const std::uint64_t number = count_.fetch_add(1, std::memory_order_relaxed) + 1;
    return number <= first_ || std::has_single_bit(number) ? number : 0;
  }

 private:
  const std::uint64_t first_;
  std::atomic<std::uint64_t> count_{0};
};

// The path within the repository, whatever directory the build ran in: "common/base/log.cc".
consteval const char* log_file(const char* path) {
  for (const char* root : {"plugin/", "common/"}) {
    const std::size_t at = std::string_view(path).rfind(root);
    if (at != std::string_view::npos) return path + at;
  }
  return path;
}

}  // namespace beeline

#define BL_LOG_(level, flags, ...) \
  ::beeline::log_line(             \
      {::beeline::LogLevel::level, (flags), ::beeline::log_file(__FILE__), __LINE__}, __VA_ARGS__)

#define BL_WARN(...) BL_LOG_(kWarn, ::beeline::kLogAll, __VA_ARGS__)
#define BL_INFO(subsys, ...) BL_LOG_(kInfo, subsys, __VA_ARGS__)

#ifdef BL_TRACE_LOG
#define BL_TRACE(subsys, ...) BL_LOG_(kTrace, subsys, __VA_ARGS__)
#else
// It is compiled, so that it stays correct, but the arguments are never evaluated.
#define BL_TRACE(subsys, ...)                                  \
  do {                                                         \
    if constexpr (false) BL_LOG_(kTrace, subsys, __VA_ARGS__); \
  } while (false)
#endif

// A warning that may be repeated often: it is logged the first `first` times, then at each power of
// two, with the count. Each place in the source has its own count. The format is a literal.
#define BL_WARN_LIMITED(first, fmt, ...)                              \
  do {                                                                \
    static constinit ::beeline::LogLimit bl_limit{first};             \
    if (const auto bl_number = bl_limit.due(); bl_number > (first)) { \
      BL_WARN(fmt " (%llu times so far)", ##__VA_ARGS__,              \
              static_cast<unsigned long long>(bl_number));            \
    } else if (bl_number != 0) {                                      \
      BL_WARN(fmt, ##__VA_ARGS__);                                    \
    }                                                                 \
  } while (false)

// Once in each process.
#define BL_LOG_ONCE_(statement)                               \
  do {                                                        \
    static constinit std::atomic<bool> bl_said{false};        \
    if (!bl_said.exchange(true, std::memory_order_relaxed)) { \
      statement;                                              \
    }                                                         \
  } while (false)
#define BL_WARN_ONCE(...) BL_LOG_ONCE_(BL_WARN(__VA_ARGS__))
#define BL_INFO_ONCE(subsys, ...) BL_LOG_ONCE_(BL_INFO(subsys, __VA_ARGS__))
