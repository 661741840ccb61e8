// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/contract/plugin_log.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdarg>
#include <cstdio>
#include <mutex>

namespace beeline::test {
namespace {

struct Log {
  std::mutex mutex;
  std::vector<LogLine> lines;
};

// Never destroyed: the plugin's threads may outlive main().
Log& log() {
  static auto* const one = new Log;
  return *one;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

const char* name_of(ncclDebugLogLevel level) {
  if (level == NCCL_LOG_WARN) return "WARN ";
  return level == NCCL_LOG_INFO ? "INFO " : "     ";
}

}  // namespace

void keep_log_line(ncclDebugLogLevel level, unsigned long, const char*, int, const char* format,
                   ...) {
  std::array<char, 4096> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  const std::lock_guard lock(log().mutex);
  log().lines.push_back({level, text.data()});
}

std::vector<LogLine> log_lines() {
  const std::lock_guard lock(log().mutex);
  return log().lines;
}

std::vector<std::string> find_log_lines(ncclDebugLogLevel level,
                                        const std::vector<std::string>& parts) {
  std::vector<std::string> found;
  for (const LogLine& line : log_lines()) {
    const std::string text = lower(line.text);
    const bool has_all = std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return text.find(lower(part)) != std::string::npos;
    });
    if (line.level == level && has_all) found.push_back(line.text);
  }
  return found;
}

void clear_log() {
  const std::lock_guard lock(log().mutex);
  log().lines.clear();
}

std::string log_text() {
  constexpr size_t kMost = 6000;
  std::string text;
  for (const LogLine& line : log_lines()) text += name_of(line.level) + line.text + "\n";
  return text.size() <= kMost ? text : "...\n" + text.substr(text.size() - kMost);
}

}  // namespace beeline::test
