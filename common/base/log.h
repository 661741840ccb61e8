// SPDX-License-Identifier: Apache-2.0
//
// What we tell people goes through NCCL's logger, with printf formats, as NCCL's own lines do.
// WARN: a person must act. INFO: what was found and made, once each. TRACE: per request; compiled
// out unless the build option `trace` is set. Any thread may log; errno survives it.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <string_view>

namespace beeline {

// NCCL's logger, with its enumeration as the int that it is: this floor knows no NCCL header.
using LogSink = void (*)(int level, unsigned long flags, const char* file, int line,
                         const char* fmt, ...);

// Null is allowed: nothing is said.
void set_log_sink(LogSink sink) noexcept;
LogSink log_sink() noexcept;

// NCCL's numbers.
enum class LogLevel : int { kWarn = 2, kInfo = 3, kTrace = 5 };

// What a line is about: NCCL's subsystems, by which people filter INFO and TRACE
// (NCCL_DEBUG_SUBSYS). Add them with |.
inline constexpr unsigned long kLogInit = 0x1;
inline constexpr unsigned long kLogNet = 0x10;
inline constexpr unsigned long kLogGraph = 0x20;
inline constexpr unsigned long kLogEnv = 0x80;
inline constexpr unsigned long kLogAll = ~0UL;

// Longer lines are cut, and end in "..." then.
inline constexpr std::size_t kLogLineBytes = 1024;

struct LogSite {
  LogLevel level;
  unsigned long flags;
  const char* file;
  int line;
};

// Writes one line, with our prefix.
[[gnu::format(printf, 2, 3)]] void log_line(const LogSite& site, const char* fmt, ...) noexcept;

// Says at which occurrences a call site that may repeat itself is to speak: the first few, then
// whenever their number is a power of two.
class LogLimit {
 public:
  constexpr explicit LogLimit(std::uint64_t first) noexcept : first_(first) {}

  // The number of this occurrence, counted from 1, or 0: say nothing.
  std::uint64_t due() noexcept {
    const std::uint64_t number = count_.fetch_add(1, std::memory_order_relaxed) + 1;
    return number <= first_ || std::has_single_bit(number) ? number : 0;
  }

 private:
  const std::uint64_t first_;
  std::atomic<std::uint64_t> count_{0};
};

// The path as people know it, whatever directory the build ran in: "common/base/log.cc".
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
// Still compiled, so that it cannot rot, but never run: its arguments are not evaluated.
#define BL_TRACE(subsys, ...)                                  \
  do {                                                         \
    if constexpr (false) BL_LOG_(kTrace, subsys, __VA_ARGS__); \
  } while (false)
#endif

// A warning that may come back often: the first `first` times, then at each power of two, with
// the count. One budget for each place in the source. The format is a literal.
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

// Once in the life of the process.
#define BL_LOG_ONCE_(statement)                               \
  do {                                                        \
    static constinit std::atomic<bool> bl_said{false};        \
    if (!bl_said.exchange(true, std::memory_order_relaxed)) { \
      statement;                                              \
    }                                                         \
  } while (false)
#define BL_WARN_ONCE(...) BL_LOG_ONCE_(BL_WARN(__VA_ARGS__))
#define BL_INFO_ONCE(subsys, ...) BL_LOG_ONCE_(BL_INFO(subsys, __VA_ARGS__))
