// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/comm/comm_link.h"

#include <unistd.h>

#include <algorithm>
#include <exception>

#include "common/base/host.h"
#include "plugin/connect/comm/control_mailbox.h"
#include "plugin/connect/socket/lock_without_sleeping.h"
#include "plugin/device/device.h"
#include "plugin/wire/message.h"

namespace beeline {
namespace {

constexpr std::uint64_t kSaid = std::uint64_t{1} << 32;

}  // namespace

CommLink::CommLink(PeerName peer, CommNumbers numbers, std::vector<const DeviceContext*> devices,
                   std::shared_ptr<Outbox> outbox, std::shared_ptr<ControlMailbox> mailbox)
    : numbers_(numbers),
      devices_(std::move(devices)),
      outbox_(std::move(outbox)),
      mailbox_(std::move(mailbox)),
      pid_(::getpid()) {
  peer_ = std::move(peer);
}

bool CommLink::is_ours() const noexcept { return ::getpid() == pid_; }

template <class Make>
void CommLink::send(Make&& make_message) noexcept {
  try {
    outbox_->send(wire::encode(make_message()));
  } catch (const std::exception&) {
    // Out of memory: the peer will notice when this process ends.
  }
}

CommLink::~CommLink() {
  if (!is_ours()) return;
  send_end(wire::RejectCode::kAbandoned, "its end of the connection was given up");
  mailbox_->link_gone({.numbers = numbers_, .settled = said_settled()});
}

std::optional<std::uint32_t> CommLink::said_settled() const noexcept {
  const std::uint64_t goodbye = goodbye_;
  if (goodbye == 0) return std::nullopt;
  return static_cast<std::uint32_t>(goodbye);
}

// What is said is recorded first: if the channel goes on in between, it is said twice and not
// never.
void CommLink::send_goodbye(std::uint32_t settled) noexcept {
  std::uint64_t unsaid = 0;
  if (!is_ours() || !goodbye_.compare_exchange_strong(unsaid, kSaid | settled)) return;
  send([&] { return wire::Goodbye{.comm = numbers_.theirs, .settled = settled}; });
}

void CommLink::send_failure(const std::string& why) noexcept {
  if (is_ours()) send_end(wire::RejectCode::kFailed, why);
}

void CommLink::say_again() noexcept {
  if (const std::optional<std::uint32_t> settled = said_settled()) {
    return send([&] { return wire::Goodbye{.comm = numbers_.theirs, .settled = *settled}; });
  }
  const auto lock = lock_without_sleeping(mutex_);
  if (!failure_.empty()) {
    return send([&] {
      return wire::Reject{
          .comm = numbers_.theirs, .code = wire::RejectCode::kFailed, .text = failure_};
    });
  }
  if (state() != State::kOpen) return;
  send([&] { return wire::StillOpen{.comm = numbers_.theirs, .our_comm = numbers_.ours}; });
}

// The message ends the peer's link, so the peer ignores any later one.
void CommLink::send_end(wire::RejectCode code, std::string_view why) noexcept {
  if (has_said_goodbye() || state() != State::kOpen) return;
  if (code == wire::RejectCode::kFailed) {
    const auto lock = lock_without_sleeping(mutex_);
    try {
      failure_ = why;
    } catch (const std::exception&) {
      // Out of memory: it is said once only.
    }
  }
  send([&] {
    return wire::Reject{.comm = numbers_.theirs, .code = code, .text = std::string(why)};
  });
}

void CommLink::on_goodbye(std::uint32_t settled) noexcept {
  if (state() != State::kOpen) return;
  peer_settled_ = settled;
  state_.store(State::kGoodbye, std::memory_order_release);
}

bool CommLink::is_on(const DeviceContext& device) const noexcept {
  return std::ranges::find(devices_, &device) != devices_.end();
}

void CommLink::lose_device(const DeviceContext& device) {
  if (state() != State::kOpen || has_said_goodbye()) return;
  cause_ = "the cause is at " + host_name() + ":" + device.ibdev() +
           ": the device was removed from its host, or has failed for good";
  send_end(wire::RejectCode::kFailed, cause_);
  state_.store(State::kDeviceGone, std::memory_order_release);
}

bool CommLink::die(const std::string& cause) {
  if (state() != State::kOpen || has_said_goodbye()) return false;
  cause_ = cause;
  state_.store(State::kDead, std::memory_order_release);
  return true;
}

}  // namespace beeline
