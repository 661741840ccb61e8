// SPDX-License-Identifier: Apache-2.0
//
// The socket of a control channel. Any thread may send: the kernel takes as much as fits into the
// socket's buffer, and the control thread sends the rest later. No caller blocks.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>

#include "common/base/fd.h"
#include "plugin/connect/socket/poller.h"
#include "plugin/wire/message_bytes.h"

namespace beeline {

// Where the messages to a peer go: in the plugin, to the socket of its control channel.
class MessageSink {
 public:
  // Any thread may call it. It does not wait. The message may be lost.
  virtual void send(const wire::Bytes& frame) noexcept = 0;
  // Whether there is a connection at present, as far as this end knows.
  virtual bool is_open() noexcept = 0;

 protected:
  ~MessageSink() = default;
};

// Threads: any thread may call send(). All other functions are for the control thread.
// Lifecycle: a comm may keep it after close(). Messages are then dropped, unless reopen() has given
//   it another connection.
class Outbox final : public MessageSink {
 public:
  Outbox(UniqueFd fd, Poller& poller) : fd_(std::move(fd)), poller_(&poller) {}

  int fd() const noexcept { return fd_.get(); }
  void set_key(Poller::Key key) noexcept { key_ = key; }

  void send(const wire::Bytes& frame) noexcept override;
  bool is_open() noexcept override;
  // Receives under the mutex of send(): if two threads use one socket at the same time, the kernel
  // puts one of them to sleep, and callers of send() must not sleep.
  Result<std::size_t> receive(std::span<std::byte> buffer) noexcept;
  // The peer has not read for so long that too many messages wait for it. The connection has ended.
  bool has_overflowed() noexcept;

  // The socket is writable again.
  void flush() noexcept;
  bool is_empty() noexcept;
  // Ends the sending direction, behind all that has been sent.
  void shut_down() noexcept;
  // Messages that wait are dropped.
  void close() noexcept;
  void reopen(UniqueFd fd, Poller::Key key) noexcept;

 private:
  void send_pending_locked() noexcept;
  void overflow_locked() noexcept;

  std::mutex mutex_;
  UniqueFd fd_;
  Poller* poller_;
  Poller::Key key_ = 0;
  wire::Bytes pending_;
  bool blocked_ = false;  // the poller waits until the socket is writable
  bool has_overflowed_ = false;
};

}  // namespace beeline
