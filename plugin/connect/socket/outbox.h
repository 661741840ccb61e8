// SPDX-License-Identifier: Apache-2.0
//
// The sending half of a control channel. Any thread may put a message in: what the socket takes is
// with the kernel when send() returns, the rest waits here for the control thread. Nobody blocks.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>

#include "common/base/fd.h"
#include "plugin/connect/socket/poller.h"
#include "plugin/wire/message_bytes.h"

namespace beeline {

// Threads: send from any, and everything else from the control thread. After close() it takes
// messages for nobody, so a comm may keep it as long as it likes.
class Outbox {
 public:
  Outbox(UniqueFd fd, Poller& poller) : fd_(std::move(fd)), poller_(&poller) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  int fd() const noexcept { return fd_.get(); }
  void set_key(Poller::Key key) noexcept { key_ = key; }

  void send(const wire::Bytes& frame) noexcept;
  // The other direction. Here, since the kernel puts one of two threads to sleep that are inside
  // the same socket at the same time, and send() must not.
  Result<std::size_t> receive(std::span<std::byte> room) noexcept;
  // The peer has not read for so long that no more is kept for it: the connection has ended.
  bool has_overflowed() noexcept;

  // The socket is writable again.
  void flush() noexcept;
  bool is_empty() noexcept;
  // Ends our direction, behind all that was sent.
  void shut_down() noexcept;
  void close() noexcept;

 private:
  void send_pending_locked() noexcept;
  void overflow_locked() noexcept;

  std::mutex mutex_;
  UniqueFd fd_;
  Poller* poller_;
  Poller::Key key_ = 0;
  wire::Bytes pending_;
  bool blocked_ = false;  // the poller tells when the socket takes more
  bool has_overflowed_ = false;
};

}  // namespace beeline
