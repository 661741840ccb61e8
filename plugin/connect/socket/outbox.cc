// SPDX-License-Identifier: Apache-2.0
//
// Sending without waiting. An error of the socket is not reported here: the reading half sees the
// same end, with its cause.
#include "plugin/connect/socket/outbox.h"

#include <sys/socket.h>

#include <exception>
#include <utility>

#include "plugin/connect/socket/fork_guard.h"
#include "plugin/connect/socket/lock_without_sleeping.h"
#include "plugin/connect/socket/socket.h"

namespace beeline {
namespace {

constexpr std::uint32_t kReading = EPOLLIN;
// All that two processes with ten thousand comms have to say, and more. Who lets it come to that
// has stopped listening, and makes us talk.
constexpr std::size_t kMostPending = std::size_t{8} << 20;

}  // namespace

void Outbox::send(const wire::Bytes& frame) noexcept {
  const auto lock = lock_without_sleeping(mutex_);
  if (!fd_ || has_overflowed_) return;
  if (pending_.size() + frame.size() > kMostPending) return overflow_locked();
  try {
    pending_.insert(pending_.end(), frame.begin(), frame.end());
  } catch (const std::exception&) {
    return;  // no memory: the peer will hear of our end when the process ends
  }
  // Else the control thread has been asked to go on with it already.
  if (pending_.size() == frame.size()) send_pending_locked();
}

// The reading half sees the end, and the control thread does the rest.
void Outbox::overflow_locked() noexcept {
  has_overflowed_ = true;
  pending_ = {};
  ::shutdown(fd_.get(), SHUT_RDWR);
}

Result<std::size_t> Outbox::receive(std::span<std::byte> room) noexcept {
  const std::lock_guard lock(mutex_);
  return receive_some(fd_.get(), room);
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
  poller_->remove(fd_.get(), key_);
  // The end of the socket itself: a child that was forked just now may hold a copy.
  ::shutdown(fd_.get(), SHUT_RDWR);
  unguard_from_fork(fd_.get());
  fd_.reset();
}

}  // namespace beeline
