// SPDX-License-Identifier: Apache-2.0
//
// The first message over a queue pair that the connection manager has connected, and the answer to
// it. Nothing else uses the queues before both have arrived.
//
// The connecting end sends one byte, and the accepting end sends one byte back. On iWARP the
// accepting end may not send before a message has arrived, and NCCL's receiver, which is the
// accepting end, would. Messages of zero bytes would do, but not every device can receive one (siw
// cannot). The byte is the PathSetup's scratch byte at both ends.
//
// The answer shows that the message was read. siw (Linux 6.1) confirms a connection before its
// queue pair reads from the TCP connection. A message that arrives in between stays unread until
// more data arrives, and the connecting end has nothing more to send. So while the answer is
// missing on iWARP, the connecting end writes zero bytes to the peer now and then. Such a write
// needs no memory there, and consumes no receive.
// Threads: the control thread.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "common/base/problem.h"
#include "plugin/connect/path/path_setup.h"

namespace beeline {

class FirstMessage {
 public:
  enum class End : std::uint8_t { kConnecting, kAccepting };

  // The path must outlive this object.
  FirstMessage(const PathSetup& path, End end) : path_(&path), end_(end) {}

  // In INIT, before the other end can send. Does nothing if the receive is there already.
  Status post_receive();
  // The connecting end, in RTS.
  Status send();
  // Takes the completions that are there, and does what they make possible. True once the message
  // and its answer have arrived, and no completion is left.
  Outcome<bool> proceed(std::int64_t now);

  std::string waiting_text() const;  // "waiting for the first message over the new connection"
  // How many writes of zero bytes were sent while the answer was missing.
  int writes() const noexcept { return writes_; }

 private:
  // If the peer has not read the message, it may have much to do, so the intervals grow.
  static constexpr std::int64_t kFirstWriteNs = 20 * kNsPerMs;
  static constexpr std::int64_t kMostNs = kNsPerSec;

  Outcome<bool> take_completion();
  bool is_write_due(std::int64_t now) const noexcept;
  Status write_nothing(std::int64_t now);

  const PathSetup* path_;
  End end_;
  bool has_posted_receive_ = false;
  bool has_sent_ = false;
  bool has_received_ = false;
  int outstanding_ = 0;  // sends and writes without completion
  int writes_ = 0;
  std::int64_t next_write_ns_ = 0;
  std::int64_t interval_ns_ = kFirstWriteNs;
};

}  // namespace beeline
