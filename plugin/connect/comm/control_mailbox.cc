// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/comm/control_mailbox.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include <exception>
#include <utility>

#include "common/base/clock.h"
#include "common/check/assert.h"
#include "plugin/connect/socket/lock_without_sleeping.h"

namespace beeline {
namespace {

void take_all(std::deque<Result<MadeConnection>>& arrived, std::vector<MadeConnection>& out) {
  for (Result<MadeConnection>& one : arrived) {
    if (one && *one != nullptr) out.push_back(std::move(*one));
  }
  arrived.clear();
}

// Whether the peer of a connection that nobody has accepted still waits for it.
bool is_awaited(const Result<MadeConnection>& arrived) {
  return arrived && *arrived != nullptr && !(*arrived)->link->has_ended();
}

}  // namespace

void Orders::clear() noexcept {
  listening.reset();
  begun.clear();
  abandoned.clear();
  closed.clear();
  gone.clear();
  unclaimed.clear();
  comms.clear();
  paths.clear();
  discarded.clear();
  stop = false;
}

Result<std::shared_ptr<ControlMailbox>> ControlMailbox::create() {
  UniqueFd wakeup_fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wakeup_fd) return fail_errno("make an event descriptor");
  std::uint32_t nonce = 0;
  if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) return fail_errno("get random bytes");
  // Not 0, which is in the memory of a fresh handle.
  return std::make_shared<ControlMailbox>(std::move(wakeup_fd), nonce | 1U);
}

void ControlMailbox::wake() const noexcept { eventfd_write(wakeup_fd_.get(), 1); }

Listener* ControlMailbox::add_listener(const wire::Token& token, RailDevices devices,
                                       const CommSettings& settings) {
  const auto lock = lock_without_sleeping(mutex_);
  const std::uint32_t number = ++last_listener_;
  auto& place = listeners_[number];
  place = std::make_unique<Listener>(number, token, devices, settings);
  listener_count_ = listeners_.size();
  return place.get();
}

Result<MadeConnection> ControlMailbox::take_accepted(Listener& listener) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return MadeConnection{};
  listener.idle_rounds_ = 0;
  listener.was_called_ = true;
  if (listener.arrived_.empty()) {
    if (listener.waits_since_ns_ == 0) listener.waits_since_ns_ = now_ns();
    return MadeConnection{};
  }
  listener.waits_since_ns_ = 0;
  Result<MadeConnection> first = std::move(listener.arrived_.front());
  listener.arrived_.pop_front();
  return first;
}

void ControlMailbox::close_listener(Listener* listener) {
  Unclaimed unclaimed;
  {
    const auto lock = lock_without_sleeping(mutex_);
    const auto found = listeners_.find(listener->number());
    if (found == listeners_.end()) return;
    close_locked(found, unclaimed);
    unclaimed = hand_over_locked(std::move(unclaimed));
  }
  wake();
}

void ControlMailbox::reclaim(OwnerId owner) {
  if (owner == kNoOwner) return;  // other communicators may still wait for what it has begun
  Unclaimed unclaimed;
  {
    const auto lock = lock_without_sleeping(mutex_);
    for (auto it = listeners_.begin(); it != listeners_.end();) {
      it = it->second->settings_.owner == owner ? close_locked(it, unclaimed) : std::next(it);
    }
    for (auto it = attempts_.begin(); it != attempts_.end();) {
      it = it->second.order.settings.owner == owner ? abandon_locked(it, unclaimed) : std::next(it);
    }
    unclaimed = hand_over_locked(std::move(unclaimed));
  }
  wake();
}

ControlMailbox::Listeners::iterator ControlMailbox::close_locked(Listeners::iterator listener,
                                                                 Unclaimed& unclaimed) {
  take_all(listener->second->arrived_, unclaimed);
  orders_.closed.push_back(listener->first);
  const auto next = listeners_.erase(listener);
  listener_count_ = listeners_.size();
  return next;
}

ControlMailbox::Attempts::iterator ControlMailbox::abandon_locked(Attempts::iterator attempt,
                                                                  Unclaimed& unclaimed) {
  auto& outcome = attempt->second.outcome;
  if (!outcome) {
    orders_.abandoned.push_back(attempt->first);
  } else if (*outcome && **outcome != nullptr) {
    unclaimed.push_back(std::move(**outcome));
  }
  return attempts_.erase(attempt);
}

ControlMailbox::Unclaimed ControlMailbox::hand_over_locked(Unclaimed unclaimed) {
  if (!served_) {
    orders_.closed.clear();  // no thread needs them
    orders_.abandoned.clear();
    return unclaimed;
  }
  for (MadeConnection& one : unclaimed) orders_.unclaimed.push_back(std::move(one));
  return {};
}

Result<ControlMailbox::AttemptState> ControlMailbox::poll_attempt(std::uint64_t remembered,
                                                                  const wire::Token& token) {
  if (remembered >> 32 != nonce_) return AttemptState{};
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return AttemptState{.is_known = true, .made = nullptr};
  const auto found = attempts_.find(static_cast<std::uint32_t>(remembered));
  if (found == attempts_.end() || found->second.order.handle.token != token) return AttemptState{};
  found->second.idle_rounds = 0;
  found->second.was_called = true;
  if (!found->second.outcome) return AttemptState{.is_known = true, .made = nullptr};
  Result<MadeConnection> outcome = std::move(*found->second.outcome);
  attempts_.erase(found);
  if (!outcome) return fail(outcome.error());
  return AttemptState{.is_known = true, .made = std::move(*outcome)};
}

std::optional<std::uint64_t> ControlMailbox::add_attempt(AttemptOrder order) {
  std::uint64_t remember = 0;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return std::nullopt;
    order.comm = next_comm();
    remember = std::uint64_t{nonce_} << 32 | order.comm;
    orders_.begun.push_back(order.comm);
    attempts_[order.comm].order = std::move(order);
  }
  wake();
  return remember;
}

// If a rank is bound to one processor, so is its control thread, and a thread that polls would keep
// it from running until the time slice ends. In all other cases this makes no system call.
void ControlMailbox::yield_to_control_thread() const noexcept {
  const int cpu = cpu_.load(std::memory_order_relaxed);
  if (cpu < 0 || cpu == ::sched_getcpu()) ::sched_yield();
}

void ControlMailbox::note_cpu() noexcept {
  cpu_.store(::sched_getcpu(), std::memory_order_relaxed);
}

void ControlMailbox::listen_on(UniqueFd listening) {
  {
    const auto lock = lock_without_sleeping(mutex_);
    orders_.listening = std::move(listening);
  }
  wake();
}

void ControlMailbox::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    orders_.stop = true;
  }
  wake();
}

// If the thread has ended, or there is no memory, the caller destroys the item.
template <class Item>
void ControlMailbox::leave_order(std::vector<Item> Orders::*where, Item item) noexcept {
  {
    const auto lock = lock_without_sleeping(mutex_);
    if (!served_) return;
    try {
      (orders_.*where).push_back(std::move(item));
    } catch (const std::exception&) {
      return;
    }
  }
  wake();
}

// If this is lost, the channel counts one comm too many, and stays open longer.
void ControlMailbox::link_gone(const GoneLink& link) noexcept { leave_order(&Orders::gone, link); }

void ControlMailbox::take_orders(Orders& taken) {
  BL_ASSERT(taken.is_empty(), "all orders of the last turn have been carried out");
  eventfd_t wakeups = 0;
  // A thread that leaves an order wakes the control thread afterwards.
  if (eventfd_read(wakeup_fd_.get(), &wakeups) != 0) return;
  const std::lock_guard lock(mutex_);
  std::swap(taken, orders_);
}

void ControlMailbox::take_back(CommMemory memory) noexcept {
  leave_order(&Orders::comms, std::move(memory));
}

void ControlMailbox::discard(std::unique_ptr<PathResources> resources) noexcept {
  leave_order(&Orders::discarded, std::move(resources));
}

void ControlMailbox::order_path(LinkOrder order) noexcept {
  leave_order(&Orders::paths, std::move(order));
}

bool ControlMailbox::leave() noexcept {
  const std::lock_guard lock(mutex_);
  if (!listeners_.empty() || !orders_.is_empty()) return false;
  served_ = false;
  orders_.clear();
  return true;
}

std::optional<AttemptOrder> ControlMailbox::find_order(std::uint32_t comm) {
  const std::lock_guard lock(mutex_);
  const auto found = attempts_.find(comm);
  if (found == attempts_.end() || found->second.outcome) return std::nullopt;
  return found->second.order;
}

std::optional<ControlMailbox::ListenerFacts> ControlMailbox::find_listener(
    std::uint32_t number, const wire::Token& token) {
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(number);
  if (found == listeners_.end() || !wire::is_same_secret(found->second->token_, token))
    return std::nullopt;
  return ListenerFacts{.devices = found->second->devices_,
                       .settings = found->second->settings_,
                       .unaccepted = found->second->arrived_.size()};
}

MadeConnection ControlMailbox::deliver_accepted(std::uint32_t listener, MadeConnection made) {
  BL_ASSERT(made != nullptr, "null would say that no connection has arrived");
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(listener);
  if (found == listeners_.end()) return made;
  found->second->arrived_.emplace_back(std::move(made));
  return nullptr;
}

MadeConnection ControlMailbox::deliver_connected(std::uint32_t comm, MadeConnection made) {
  BL_ASSERT(made != nullptr, "null would say that the connect is not over");
  const std::lock_guard lock(mutex_);
  const auto found = attempts_.find(comm);
  if (found == attempts_.end()) return made;
  found->second.outcome = Result<MadeConnection>(std::move(made));
  return nullptr;
}

void ControlMailbox::fail_accept(std::uint32_t listener, Error error) {
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(listener);
  if (found == listeners_.end()) return;
  auto& arrived = found->second->arrived_;
  // One failure is enough, however often a peer fails.
  if (arrived.empty() || arrived.back()) arrived.emplace_back(fail(error));
}

void ControlMailbox::fail_connect(std::uint32_t comm, Error error) {
  const std::lock_guard lock(mutex_);
  const auto found = attempts_.find(comm);
  if (found != attempts_.end()) found->second.outcome = Result<MadeConnection>(fail(error));
}

bool ControlMailbox::take_call(std::uint32_t comm) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = attempts_.find(comm);
  return found != attempts_.end() && std::exchange(found->second.was_called, false);
}

std::vector<ControlMailbox::ListenerCalls> ControlMailbox::take_listener_calls() {
  std::vector<ListenerCalls> calls;
  const std::lock_guard lock(mutex_);
  calls.reserve(listeners_.size());
  for (const auto& [number, listener] : listeners_) {
    calls.push_back({.listener = number,
                     .devices = listener->devices_,
                     .waits_since_ns = listener->waits_since_ns_,
                     .was_called = std::exchange(listener->was_called_, false)});
  }
  return calls;
}

void ControlMailbox::expire() {
  Unclaimed unclaimed;
  const std::lock_guard lock(mutex_);
  for (auto it = attempts_.begin(); it != attempts_.end();) {
    Attempt& attempt = it->second;
    const bool over =
        attempt.order.settings.owner == kNoOwner && ++attempt.idle_rounds > kIdleRounds;
    it = over ? abandon_locked(it, unclaimed) : std::next(it);
  }
  for (const auto& [number, listener] : listeners_) {
    if (listener->settings_.owner != kNoOwner || listener->arrived_.empty()) continue;
    const bool awaited = is_awaited(listener->arrived_.front());
    if (++listener->idle_rounds_ <= (awaited ? kAwaitedIdleRounds : kIdleRounds)) continue;
    take_all(listener->arrived_, unclaimed);
    listener->idle_rounds_ = 0;
  }
  if (orders_.abandoned.empty() && unclaimed.empty()) return;
  unclaimed = hand_over_locked(std::move(unclaimed));
  wake();
}

bool ControlMailbox::is_served() noexcept {
  const auto lock = lock_without_sleeping(mutex_);
  return served_;
}

void ControlMailbox::start_serving() noexcept {
  const auto lock = lock_without_sleeping(mutex_);
  BL_ASSERT(!served_, "one control thread at a time serves the mailbox");
  served_ = true;
}

void ControlMailbox::fail_all(Error error) noexcept {
  Orders orders;
  const std::lock_guard lock(mutex_);
  served_ = false;
  std::swap(orders, orders_);
  for (auto& [comm, attempt] : attempts_) {
    if (!attempt.outcome) attempt.outcome = Result<MadeConnection>(fail(error));
  }
  // Their handles name a listening socket that is closed.
  for (auto& [number, listener] : listeners_) listener->arrived_.emplace_back(fail(error));
}

void ControlMailbox::clear() noexcept {
  Listeners listeners;
  Attempts attempts;
  Orders orders;
  const std::lock_guard lock(mutex_);
  served_ = false;
  listener_count_ = 0;
  listeners.swap(listeners_);
  attempts.swap(attempts_);
  std::swap(orders, orders_);
}

}  // namespace beeline
