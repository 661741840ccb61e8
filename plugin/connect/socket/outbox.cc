// SPDX-License-Identifier: Apache-2.0
//
// Errors of send() are not reported here, because receive() sees the end of the connection, too,
// and its cause.
#include "plugin/connect/socket/outbox.h"

#include <sys/socket.h>

#include <exception>
#include <utility>

#include "common/check/assert.h"
#include "plugin/connect/socket/fork_guard.h"
#include "plugin/connect/socket/lock_without_sleeping.h"
#include "plugin/connect/socket/socket.h"

namespace beeline {
namespace {

constexpr std::uint32_t kReading = EPOLLIN;
// More than two processes with ten thousand comms send. A peer for which this much waits does not
// read, and provokes answers.
constexpr std::size_t kMostPending = std::size_t{8} << 20;

}  // namespace

void Outbox::send(const wire::Bytes& frame) noexcept {
  const auto lock = lock_without_sleeping(mutex_);
  if (!fd_ || has_overflowed_) return;
  if (pending_.size() + frame.size() > kMostPending) return overflow_locked();
  try {
    pending_.insert(pending_.end(), frame.begin(), frame.end());
  } catch (const std::exception&) {
    return;  // out of memory: the peer will notice when this process ends
  }
  // Otherwise earlier messages wait, and the poller already waits for a writable socket.
  if (pending_.size() == frame.size()) send_pending_locked();
}

// After the shutdown, receive() reports the end, and the control thread closes the channel.
void Outbox::overflow_locked() noexcept {
  has_overflowed_ = true;
  pending_ = {};
  ::shutdown(fd_.get(), SHUT_RDWR);
}

Result<std::size_t> Outbox::receive(std::span<std::byte> buffer) noexcept {
  const std::lock_guard lock(mutex_);
  BL_ASSERT(fd_, "nothing is received once the connection is closed");
  return receive_some(fd_.get(), buffer);
}

bool Outbox::is_open() noexcept {
  const auto lock = lock_without_sleeping(mutex_);
  return static_cast<bool>(fd_);
}

bool Outbox::has_overflowed() noexcept {
  const std::lock_guard lock(mutex_);
  return has_overflowed_;
}

void Outbox::flush() noexcept {
  const std::lock_guard lock(mutex_);
  if (fd_) send_pending_locked();
}

void Outbox::send_pending_locked() noexcept {
  while (!pending_.empty()) {
    const Result<std::size_t> sent = send_some(fd_.get(), pending_);
    if (!sent) {
      pending_.clear();
      break;
    }
    if (*sent == 0) break;
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(*sent));
  }
  if (std::exchange(blocked_, !pending_.empty()) == blocked_) return;
  poller_->want(fd_.get(), key_, blocked_ ? kReading | EPOLLOUT : kReading);
}

bool Outbox::is_empty() noexcept {
  const std::lock_guard lock(mutex_);
  return pending_.empty();
}

void Outbox::shut_down() noexcept {
  const std::lock_guard lock(mutex_);
  if (fd_) ::shutdown(fd_.get(), SHUT_WR);
}

void Outbox::close() noexcept {
  const std::lock_guard lock(mutex_);
  if (!fd_) return;
  pending_ = {};
  blocked_ = false;
  poller_->remove(fd_.get(), key_);
  // close() alone would not end the connection while a child that was just forked has a copy.
  ::shutdown(fd_.get(), SHUT_RDWR);
  unguard_from_fork(fd_.get());
  fd_.reset();
}

void Outbox::reopen(UniqueFd fd, Poller::Key key) noexcept {
  const std::lock_guard lock(mutex_);
  BL_ASSERT(!fd_, "an outbox is closed before it gets another connection");
  fd_ = std::move(fd);
  key_ = key;
}

}  // namespace beeline
