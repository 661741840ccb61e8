// SPDX-License-Identifier: Apache-2.0
//
// The connection between a rank and the coordinator: frames over a stream socket, either a socket
// pair or TCP. Frames are small and rare; the data that is measured goes over the plugin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/base/fd.h"
#include "common/base/problem.h"

namespace beeline::ranks {

enum class FrameKind : std::uint8_t {
  // rank to coordinator
  kHello = 1,  // the proof of the token, then hello.h: the rank, and what it tells of itself
  kPlugin,     // JSON: the plugin and its devices
  kStatus,     // JSON: how much is done, and what it waits for
  kGather,     // the purpose, NUL, the part of this rank
  kRow,        // JSON: the row of this rank for one line of the table
  kFailed,     // one byte of exit status, then the reason
  kDone,
  // coordinator to rank
  kGathered,  // the parts of all ranks by rank, each preceded by its length
  kWelcome,   // to a rank that has connected: all ranks have connected
  // before kHello
  kChallenge,  // rank to rank 0: its challenge
  kProof,      // rank 0 to rank: its challenge, then its proof of the token
};

struct Frame {
  FrameKind kind{};
  std::string body;
};

class FrameSocket {
 public:
  FrameSocket() = default;
  // `longest` is the length of the longest frame that the other end may send.
  explicit FrameSocket(UniqueFd fd, size_t longest = kTrusted)
      : fd_(std::move(fd)), longest_(longest) {}

  explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  int fd() const noexcept { return fd_.get(); }
  void close() { fd_.reset(); }
  // Gives the connection to the caller, and in `unread` the bytes that were read from it already.
  UniqueFd release(std::string* unread) {
    *unread = std::exchange(in_, {});
    return std::move(fd_);
  }
  // From now on, the other end may send the longest frame that a run can have.
  void trust() noexcept { longest_ = kTrusted; }

  // Waits until the frame is sent. False if the other end has closed the connection.
  bool send(FrameKind kind, const std::string& body);
  // Waits for a whole frame. None if the other end has closed the connection, or after a timeout.
  std::optional<Frame> receive(std::int64_t deadline_ns = kNever);
  // Reads the available bytes without waiting. False if the other end has closed the connection, or
  // announces a frame that is too long, which no rank does.
  bool read_some();
  // The next whole frame of the bytes that were read.
  std::optional<Frame> next();

 private:
  static constexpr std::int64_t kNever = INT64_MAX;
  // The handles of a thousand ranks with many comms each fit.
  static constexpr size_t kTrusted = size_t{1} << 30;

  bool announces_too_much() const;

  UniqueFd fd_;
  size_t longest_ = kTrusted;
  std::string in_;
};

}  // namespace beeline::ranks
