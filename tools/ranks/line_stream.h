// SPDX-License-Identifier: Apache-2.0
//
// Lines of text between two processes. They are small and rare: the data that is measured goes over
// the plugin. They are text because a command that starts a process on another host may print
// something of its own, which an error can then show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/base/fd.h"
#include "common/base/problem.h"

namespace beeline::ranks {

class LineStream {
 public:
  // The handles of a thousand ranks with many comms each fit.
  static constexpr std::size_t kLongest = std::size_t{2} << 30;

  LineStream() = default;
  // `longest` is the length of the longest line that the other end may send.
  explicit LineStream(UniqueFd socket, std::size_t longest = kLongest)
      : in_(std::move(socket)), longest_(longest) {}
  // Over pipes. SIGPIPE has to be ignored.
  LineStream(UniqueFd in, UniqueFd out) : in_(std::move(in)), out_(std::move(out)) {}

  explicit operator bool() const noexcept { return static_cast<bool>(in_); }
  // For poll(). receive() may return although there is nothing to read, if is_readable() says so.
  int fd() const noexcept { return in_.get(); }
  void allow(std::size_t longest) noexcept { longest_ = longest; }

  // Waits until the line is sent. It has no line break.
  Outcome<void> send(const std::string& line);
  // Waits for a whole line, until the deadline at the latest.
  Outcome<std::string> receive(std::int64_t deadline_ns = INT64_MAX);
  // Reads the available bytes without waiting. An error: the other end has closed the connection,
  // or sends a line that is too long.
  Outcome<void> read_some() { return read_for(0); }
  // The next whole line of the bytes that were read.
  std::optional<std::string> next();
  // Whether receive() would return at once, with a line or with an error.
  bool is_readable();

 private:
  Outcome<void> read_for(int timeout_ms);
  bool is_too_long() const;

  UniqueFd in_;
  UniqueFd out_;  // none: `in_` is a socket
  std::size_t longest_ = kLongest;
  std::string text_;  // that was read, and not yet returned
};

}  // namespace beeline::ranks
