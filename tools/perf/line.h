// SPDX-License-Identifier: Apache-2.0
//
// The line between a rank and the coordinator: frames over a stream socket, be it a socket pair or
// TCP. What travels here is small and rare; the plugin carries the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plugin/base/fd.h"
#include "tools/outcome.h"

namespace beeline::perf {

enum class FrameKind : std::uint8_t {
  // rank to coordinator
  kHello = 1,  // JSON: who I am, and what I am about to run
  kPlugin,     // JSON: the plugin, its devices
  kStatus,     // JSON: how much is done, what is being waited for
  kGather,     // what for, NUL, my part
  kRow,        // JSON: my share of one line of the table
  kFailed,     // one byte of exit status, then a sentence
  kDone,
  // coordinator to rank
  kGathered,  // all parts, in order of rank, each after its length
};

struct Frame {
  FrameKind kind{};
  std::string body;
};

class Line {
 public:
  Line() = default;
  explicit Line(UniqueFd fd) : fd_(std::move(fd)) {}

  explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  int fd() const noexcept { return fd_.get(); }
  void close() { fd_.reset(); }

  // Waits until all is sent; false when the other end is gone.
  bool send(FrameKind kind, const std::string& body);
  // Waits for a whole frame; none when the other end is gone.
  std::optional<Frame> receive();
  // Takes in what is there without waiting; false when the other end is gone.
  bool read_some();
  // The next whole frame among what was taken in.
  std::optional<Frame> next();

 private:
  UniqueFd fd_;
  std::string in_;
};

}  // namespace beeline::perf
