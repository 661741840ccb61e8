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

// That wait to be taken. An end sends one for each generation of a path, and a second as an answer.
constexpr std::size_t kMostReports = 4 * wire::kMaxPaths;

constexpr std::uint64_t kSaid = std::uint64_t{1} << 32;

}  // namespace

CommLink::CommLink(PeerName peer, CommNumbers numbers, std::vector<const DeviceContext*> devices,
                   std::shared_ptr<Outbox> outbox, std::shared_ptr<ControlMailbox> mailbox,
                   bool exchanges_reports)
    : numbers_(numbers),
      devices_(std::move(devices)),
      outbox_(std::move(outbox)),
      mailbox_(std::move(mailbox)),
      pid_(::getpid()),
      exchanges_reports_(exchanges_reports) {
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
  if (has_ended()) return;
  send([&] { return wire::StillOpen{.comm = numbers_.theirs, .our_comm = numbers_.ours}; });
  for (const wire::Fenced& report : sent_reports_) send([&] { return report; });
}

// The message ends the peer's link, so the peer ignores any later one.
void CommLink::send_end(wire::RejectCode code, std::string_view why) noexcept {
  if (has_said_goodbye() || has_ended()) return;
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
  if (has_ended()) return;
  peer_settled_ = settled;
  state_.store(State::kGoodbye, std::memory_order_release);
}

void CommLink::send_report(wire::Fenced report) noexcept {
  if (!is_ours() || has_said_goodbye() || has_ended()) return;
  report.comm = numbers_.theirs;
  const auto lock = lock_without_sleeping(mutex_);
  std::erase_if(sent_reports_, [&](const auto& older) { return older.path == report.path; });
  try {
    sent_reports_.push_back(report);
  } catch (const std::exception&) {
    // Out of memory: it is sent once only.
  }
  send([&] { return report; });
}

bool CommLink::on_report(const wire::Fenced& report) {
  if (!exchanges_reports_) return false;
  if (has_ended()) return true;
  const auto lock = lock_without_sleeping(mutex_);
  if (reports_.size() == kMostReports) return false;
  reports_.push_back(report);
  state_.store(State::kReports, std::memory_order_release);
  return true;
}

// The control thread alone ends the link, and may do so meanwhile.
std::optional<wire::Fenced> CommLink::take_report() noexcept {
  const auto lock = lock_without_sleeping(mutex_);
  std::optional<wire::Fenced> first;
  if (!reports_.empty()) {
    first = reports_.front();
    reports_.pop_front();
  } else {
    State expected = State::kReports;
    state_.compare_exchange_strong(expected, State::kOpen, std::memory_order_acq_rel);
  }
  return first;
}

bool CommLink::is_on(const DeviceContext& device) const noexcept {
  return std::ranges::find(devices_, &device) != devices_.end();
}

void CommLink::lose_device(const DeviceContext& device) {
  if (has_ended() || has_said_goodbye()) return;
  cause_ = "the cause is at " + host_name() + ":" + device.ibdev() +
           ": the device was removed from its host, or has failed for good";
  send_end(wire::RejectCode::kFailed, cause_);
  state_.store(State::kDeviceGone, std::memory_order_release);
}

bool CommLink::die(const std::string& cause) {
  if (has_ended() || has_said_goodbye()) return false;
  cause_ = cause;
  state_.store(State::kDead, std::memory_order_release);
  return true;
}

}  // namespace beeline
