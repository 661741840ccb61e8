// SPDX-License-Identifier: Apache-2.0
//
// Lines of text between two doctors, over a pair of pipes or a socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/fd.h"
#include "tools/cli/exit_status.h"

namespace beeline::doctor {

class LineStream {
 public:
  LineStream() = default;
  // `unread` was read from `in` already.
  LineStream(UniqueFd in, UniqueFd out, std::string unread = {})
      : in_(std::move(in)), out_(std::move(out)), text_(std::move(unread)) {}

  // `line` has no line break.
  Outcome<void> send(const std::string& line);
  // Waits for a whole line, until the deadline at the latest. `longest` bounds the bytes that are
  // read before.
  Outcome<std::string> receive(std::int64_t deadline_ns, std::size_t longest = kLongestAnswer);
  // Whether receive() would return at once, with a line or with an error.
  bool is_readable();
  // For poll(). receive() may return although there is nothing to read, if is_readable() says so.
  int fd() const noexcept { return in_.get(); }

 private:
  // A report of a host with many devices has some 100 KB.
  static constexpr std::size_t kLongestAnswer = std::size_t{64} << 20;

  Outcome<bool> read_some(int timeout_ms, std::size_t longest);

  UniqueFd in_;
  UniqueFd out_;
  std::string text_;  // that was read, and not yet returned
};

}  // namespace beeline::doctor
