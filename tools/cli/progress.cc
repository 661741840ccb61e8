// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "common/base/terminal_text.h"
#include "tools/cli/text_style.h"
#include "topology/render/utf8.h"

namespace beeline::tools {

ProgressLine::ProgressLine() noexcept
    : columns_(takes_escapes(STDERR_FILENO) ? terminal_columns(STDERR_FILENO) : 0) {}

void ProgressLine::show(const std::string& text) {
  if (!is_seen()) return;
  // A line of all columns would move the cursor to the next line.
  const std::string shown = topology::printable(text);
  fmt::print(stderr, "\r\033[K{}", topology::first_characters(shown, columns_ - 1));
  is_shown_ = true;
}

void ProgressLine::clear() {
  if (is_shown_) fmt::print(stderr, "\r\033[K");
  is_shown_ = false;
}

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (line_.is_seen()) thread_ = std::thread([this] { run(); });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Progress::say(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
}

void Progress::run() {
  constexpr int kQuietSeconds = 2;
  std::unique_lock lock(mutex_);
  for (int seconds = 1; !over_.wait_for(lock, std::chrono::seconds(1), [this] { return is_over_; });
       ++seconds) {
    if (seconds >= kQuietSeconds) line_.show(fmt::format("# {} s, {}", seconds, what_));
  }
}

}  // namespace beeline::tools
