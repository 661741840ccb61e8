// SPDX-License-Identifier: Apache-2.0
//
// Orders and results under one mutex.
#include "plugin/connect/desk.h"

#include <sys/eventfd.h>
#include <sys/random.h>

#include <exception>
#include <utility>

namespace beeline {

Result<std::shared_ptr<Desk>> Desk::create() {
  UniqueFd bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell) return fail_errno("make an event descriptor");
  std::uint32_t nonce = 0;
  if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) return fail_errno("get random bytes");
  // Not zero: an empty handle remembers 0.
  return std::make_shared<Desk>(std::move(bell), nonce | 1U);
}

void Desk::ring() const noexcept { eventfd_write(bell_.get(), 1); }

Listener* Desk::add_listener(const wire::Token& token, const Device& device) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t number = ++last_listener_;
  auto& place = listeners_[number];
  place = std::make_unique<Listener>(number, token, device);
  return place.get();
}

Result<MadeConnection> Desk::take_accepted(Listener& listener) {
  const std::lock_guard lock(mutex_);
  if (listener.arrived_.empty()) return MadeConnection{};
  Result<MadeConnection> first = std::move(listener.arrived_.front());
  listener.arrived_.pop_front();
  return first;
}

void Desk::close_listener(Listener* listener) noexcept {
  std::unique_ptr<Listener> closed;
  {
    const std::lock_guard lock(mutex_);
    const auto found = listeners_.find(listener->number());
    if (found == listeners_.end()) return;
    closed = std::move(found->second);
    listeners_.erase(found);
    for (Result<MadeConnection>& one : closed->arrived_) {
      if (one && *one != nullptr) orders_.unclaimed.push_back(std::move(*one));
    }
  }
  ring();
}

std::optional<std::uint32_t> Desk::find_attempt(std::uint64_t remembered,
                                                const wire::Token& token) {
  const std::lock_guard lock(mutex_);
  if (remembered >> 32 != nonce_) return std::nullopt;
  const auto comm = static_cast<std::uint32_t>(remembered);
  const auto found = attempts_.find(comm);
  if (found == attempts_.end() || found->second.token != token) return std::nullopt;
  return comm;
}

std::uint64_t Desk::add_attempt(AttemptOrder order) {
  std::uint64_t remember = 0;
  {
    const std::lock_guard lock(mutex_);
    order.comm = ++last_comm_;
    attempts_[order.comm].token = order.handle.token;
    remember = std::uint64_t{nonce_} << 32 | order.comm;
    orders_.attempts.push_back(std::move(order));
  }
  ring();
  return remember;
}

Result<MadeConnection> Desk::take_connected(std::uint32_t comm) {
  const std::lock_guard lock(mutex_);
  const auto found = attempts_.find(comm);
  if (found == attempts_.end()) return fail(Errc::kInternal, "look for a connect attempt");
  if (!found->second.outcome) return MadeConnection{};
  Result<MadeConnection> outcome = std::move(*found->second.outcome);
  attempts_.erase(found);
  return outcome;
}

void Desk::open_door(UniqueFd listening) {
  {
    const std::lock_guard lock(mutex_);
    orders_.door = std::move(listening);
  }
  ring();
}

void Desk::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    orders_.stop = true;
  }
  ring();
}

void Desk::link_gone(const CommNumbers& numbers) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!served_) return;  // nobody minds channels any more
    try {
      orders_.gone.push_back(numbers);
    } catch (const std::exception&) {
      return;  // no memory: the channel counts a comm too many, and stays open longer
    }
  }
  ring();
}

Orders Desk::take_orders() {
  eventfd_t rung = 0;
  eventfd_read(bell_.get(), &rung);
  const std::lock_guard lock(mutex_);
  return std::exchange(orders_, Orders{});
}

bool Desk::leave() noexcept {
  const std::lock_guard lock(mutex_);
  if (!listeners_.empty() || !orders_.is_empty()) return false;
  served_ = false;
  return true;
}

bool Desk::has_listeners() {
  const std::lock_guard lock(mutex_);
  return !listeners_.empty();
}

std::uint32_t Desk::next_comm() {
  const std::lock_guard lock(mutex_);
  return ++last_comm_;
}

const Device* Desk::find_listener(std::uint32_t number, const wire::Token& token) {
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(number);
  if (found == listeners_.end() || found->second->token_ != token) return nullptr;
  return found->second->device_;
}

MadeConnection Desk::deliver_accepted(std::uint32_t listener, MadeConnection made) {
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(listener);
  if (found == listeners_.end()) return made;
  found->second->arrived_.emplace_back(std::move(made));
  return nullptr;
}

MadeConnection Desk::deliver_connected(std::uint32_t comm, MadeConnection made) {
  const std::lock_guard lock(mutex_);
  const auto found = attempts_.find(comm);
  if (found == attempts_.end()) return made;
  found->second.outcome = Result<MadeConnection>(std::move(made));
  return nullptr;
}

void Desk::fail_accept(std::uint32_t listener, Error error) {
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(listener);
  if (found != listeners_.end()) found->second->arrived_.emplace_back(fail(error));
}

void Desk::fail_connect(std::uint32_t comm, Error error) {
  const std::lock_guard lock(mutex_);
  const auto found = attempts_.find(comm);
  if (found != attempts_.end()) found->second.outcome = Result<MadeConnection>(fail(error));
}

bool Desk::is_served() noexcept {
  const std::lock_guard lock(mutex_);
  return served_;
}

void Desk::start_serving() noexcept {
  const std::lock_guard lock(mutex_);
  served_ = true;
}

void Desk::fail_all(Error error) noexcept {
  Orders orders;
  const std::lock_guard lock(mutex_);
  served_ = false;
  std::swap(orders, orders_);
  for (auto& [comm, attempt] : attempts_) {
    if (!attempt.outcome) attempt.outcome = Result<MadeConnection>(fail(error));
  }
}

void Desk::clear() noexcept {
  decltype(listeners_) listeners;
  decltype(attempts_) attempts;
  Orders orders;
  const std::lock_guard lock(mutex_);
  served_ = false;
  listeners.swap(listeners_);
  attempts.swap(attempts_);
  std::swap(orders, orders_);
}

}  // namespace beeline
