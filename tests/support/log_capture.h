// SPDX-License-Identifier: Apache-2.0
//
// Replaces NCCL's logger as long as it lives, and keeps all log lines, from any thread.
#pragma once

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/base/log.h"

namespace beeline::test {

class LogCapture {
 public:
  struct Line {
    LogLevel level;
    unsigned long flags;
    std::string file;
    int number;
    std::string text;
  };

  LogCapture() : sink_before_(log_sink()), capture_before_(exchange(this)) { set_log_sink(&keep); }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  ~LogCapture() {
    set_log_sink(sink_before_);
    exchange(capture_before_);
  }

  std::vector<Line> lines() const {
    const std::lock_guard lock(mutex());
    return lines_;
  }

  // How many lines contain this.
  size_t count(const std::string& part) const {
    const std::lock_guard lock(mutex());
    return static_cast<size_t>(std::count_if(lines_.begin(), lines_.end(), [&](const Line& line) {
      return line.text.find(part) != std::string::npos;
    }));
  }
  size_t count(LogLevel level) const {
    const std::lock_guard lock(mutex());
    return static_cast<size_t>(std::count_if(
        lines_.begin(), lines_.end(), [&](const Line& line) { return line.level == level; }));
  }
  bool has(const std::string& part) const { return count(part) != 0; }

  // All lines. INFO(all_text()) shows them beside a failed check.
  std::string all_text() const {
    const std::lock_guard lock(mutex());
    std::string all;
    for (const Line& line : lines_) all += line.text + "\n";
    return all;
  }

  void clear() {
    const std::lock_guard lock(mutex());
    lines_.clear();
  }

 private:
  // One lock for all captures: a sink is a plain function, and finds its capture through a global.
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static LogCapture*& current() {
    static LogCapture* one = nullptr;
    return one;
  }
  static LogCapture* exchange(LogCapture* next) {
    const std::lock_guard lock(mutex());
    return std::exchange(current(), next);
  }

  static void keep(int level, unsigned long flags, const char* file, int line, const char* fmt,
                   ...) {
    char text[2 * kLogLineBytes];
    va_list arguments;
    va_start(arguments, fmt);
    std::vsnprintf(text, sizeof(text), fmt, arguments);
    va_end(arguments);
    const std::lock_guard lock(mutex());
    if (current() == nullptr) return;
    current()->lines_.push_back({static_cast<LogLevel>(level), flags, file, line, text});
  }

  const LogSink sink_before_;
  LogCapture* const capture_before_;
  std::vector<Line> lines_;
};

}  // namespace beeline::test
