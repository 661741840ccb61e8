// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/socket/poller.h"

#include <algorithm>
#include <array>

#include "common/base/clock.h"
#include "common/check/assert.h"

namespace beeline {

Result<std::unique_ptr<Poller>> Poller::create() {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return fail_errno("make an epoll descriptor");
  return std::unique_ptr<Poller>(new Poller(std::move(epoll)));
}

Result<Poller::Key> Poller::add(int fd, std::uint32_t events, Handler handler) {
  const Key key = ++last_key_;
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return fail_errno("add a descriptor to epoll");
  }
  handlers_.emplace(key, std::make_shared<Handler>(std::move(handler)));
  return key;
}

void Poller::want(int fd, Key key, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  const int rc = epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  BL_ASSERT(rc == 0, "the descriptor was added, and is open");
}

void Poller::remove(int fd, Key key) noexcept {
  const int rc = epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  BL_ASSERT(rc == 0 || !handlers_.contains(key), "a descriptor is removed before it is closed");
  handlers_.erase(key);
}

void Poller::at(std::int64_t when_ns, std::function<void()> call) {
  timers_.push({.when_ns = when_ns, .number = ++last_timer_, .call = std::move(call)});
}

int Poller::timeout_ms() const noexcept {
  if (timers_.empty()) return -1;
  const std::int64_t left = timers_.top().when_ns - now_ns();
  // Rounded up, so that the thread does not spin for the last fraction of a millisecond.
  return static_cast<int>(std::clamp<std::int64_t>((left + kNsPerMs - 1) / kNsPerMs, 0, 60'000));
}

void Poller::run_timers() {
  const std::int64_t now = now_ns();
  while (!timers_.empty() && timers_.top().when_ns <= now) {
    const std::function<void()> call = timers_.top().call;
    timers_.pop();
    call();
  }
}

void Poller::run_once(Idle idle) {
  std::array<epoll_event, 64> events;
  const int timeout = idle == Idle::kMayWait ? timeout_ms() : 0;
  const std::int64_t start = now_ns();
  const int count =
      epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
  waited_ns_ += now_ns() - start;
  for (int i = 0; i < count; ++i) {
    const epoll_event event = events[static_cast<std::size_t>(i)];
    const auto found = handlers_.find(event.data.u64);
    if (found == handlers_.end()) continue;
    const std::shared_ptr<Handler> handler = found->second;  // a copy, since it may remove itself
    (*handler)(event.events);
  }
  run_timers();
}

}  // namespace beeline
