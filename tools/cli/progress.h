// SPDX-License-Identifier: Apache-2.0
//
// Shows on a terminal that long work goes on: one line on stderr, which is erased at the end.
// Nothing is written where stderr is no terminal, or one that cannot erase a line (TERM=dumb).
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace beeline::tools {

class ProgressLine {
 public:
  ProgressLine() noexcept;
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }

  bool is_seen() const noexcept { return columns_ != 0; }
  // In the place of what it showed before.
  void show(const std::string& text);
  void clear();

 private:
  const std::size_t columns_;  // of the terminal; 0: there is none that can erase
  bool is_shown_ = false;
};

// While it lives, a thread shows what is being done and for how long, once a second. It begins
// after some seconds. A process with it does not fork, unless exec() follows.
class Progress {
 public:
  explicit Progress(std::string what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  // What is done now. Any thread may call it.
  void say(std::string what);

 private:
  void run();

  ProgressLine line_;
  std::mutex mutex_;  // for the following two
  std::string what_;
  bool is_over_ = false;
  std::condition_variable over_;
  std::thread thread_;  // none without a terminal
};

}  // namespace beeline::tools
