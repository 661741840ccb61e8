// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/comm/comm_link.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <type_traits>
#include <utility>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "common/check/assert.h"
#include "plugin/connect/comm/control_mailbox.h"
#include "plugin/connect/socket/lock_without_sleeping.h"
#include "plugin/device/device.h"

namespace beeline {
namespace {

constexpr std::uint64_t kSaid = std::uint64_t{1} << 32;

template <class Message>
constexpr bool is_note = std::is_same_v<Message, wire::PathNote>;

// Whether the newer message makes the older one void. A message says how its sender stands, so the
// last of its kind is enough; an end that waits repeats its message while NCCL may not call this
// end for a long time.
bool replaces(const PathMessage& newer, const PathMail& older) {
  const auto* const message = std::get_if<PathMessage>(&older);
  if (message == nullptr || message->index() != newer.index()) return false;
  return std::visit(
      [&](const auto& one) {
        using Message = std::decay_t<decltype(one)>;
        const auto& other = std::get<Message>(*message);
        if constexpr (is_note<Message>) {
          if (one.news != other.news) return false;
        }
        return one.path == other.path;
      },
      newer);
}

}  // namespace

CommLink::CommLink(PeerName peer, CommNumbers numbers, std::vector<const Device*> devices,
                   std::shared_ptr<MessageSink> outbox, std::shared_ptr<ControlMailbox> mailbox,
                   bool exchanges_reports)
    : numbers_(numbers),
      devices_(std::move(devices)),
      outbox_(std::move(outbox)),
      mailbox_(std::move(mailbox)),
      pid_(::getpid()),
      exchanges_reports_(exchanges_reports) {
  peer_ = std::move(peer);
  number_ = numbers.ours;
  peer_number_ = numbers.theirs;
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

void CommLink::tell(PathNews news) noexcept {
  if (!is_ours()) return;
  news.connection = this;
  mailbox_->path_log().add(news, now_ns());
}

void CommLink::tell_end(const std::string& line) noexcept {
  if (!is_ours()) {
    BL_WARN("%s", line.c_str());
    return;
  }
  mailbox_->path_log().add_end(peer_.host + " (pid " + std::to_string(peer_.pid) + ")", line,
                               now_ns());
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
  set_state(State::kGoodbye);
}

wire::Bytes CommLink::send_about_path(PathMessage message) noexcept {
  if (!is_ours() || has_said_goodbye() || has_ended()) return {};
  try {
    std::visit([this](auto& any) { any.comm = numbers_.theirs; }, message);
    if (const auto* const report = std::get_if<wire::Fenced>(&message)) {
      const auto lock = lock_without_sleeping(mutex_);
      std::erase_if(sent_reports_, [&](const auto& older) { return older.path == report->path; });
      sent_reports_.push_back(*report);
    }
    wire::Bytes frame = std::visit([](const auto& any) { return wire::encode(any); }, message);
    outbox_->send(frame);
    return frame;
  } catch (const std::exception&) {
    return {};  // out of memory: an end that waits for the peer says it again
  }
}

void CommLink::order(PathOrder order) noexcept {
  if (is_ours()) mailbox_->order_path({.link = weak_from_this(), .order = std::move(order)});
}

void CommLink::discard(std::unique_ptr<PathResources> resources) noexcept {
  if (is_ours()) mailbox_->discard(std::move(resources));
}

void CommLink::ask_for_service() noexcept {
  if (is_ours()) mailbox_->order_path({.link = weak_from_this(), .order = std::nullopt});
}

void CommLink::add_mail(PathMail mail) {
  {
    const auto lock = lock_without_sleeping(mutex_);
    if (const auto* const message = std::get_if<PathMessage>(&mail)) {
      std::erase_if(mail_, [&](const PathMail& older) { return replaces(*message, older); });
    }
    mail_.push_back(std::move(mail));
  }
  alert();
}

bool CommLink::on_message(PathMessage message) {
  if (!exchanges_reports_) return false;
  if (!has_ended()) add_mail(std::move(message));
  return true;
}

void CommLink::on_result(PathMail result) {
  BL_ASSERT(!std::holds_alternative<PathMessage>(result), "a peer's message is none");
  if (!has_ended()) add_mail(std::move(result));
}

void CommLink::alert() noexcept {
  if (exchanges_reports_) change_state(State::kOpen, State::kPathNews);
}

// The control thread may end the link at any time, and add mail.
std::optional<PathMail> CommLink::take_mail() noexcept {
  const auto lock = lock_without_sleeping(mutex_);
  if (mail_.empty()) {
    change_state(State::kPathNews, State::kOpen);
    return std::nullopt;
  }
  std::optional<PathMail> first(std::move(mail_.front()));
  mail_.pop_front();
  return first;
}

bool CommLink::is_on(const DeviceContext& context) const noexcept {
  return std::ranges::any_of(devices_, [&](const Device* device) {
    return device->context == &context || device->newest().context == &context;
  });
}

void CommLink::add_device(const Device& device) {
  if (std::ranges::find(devices_, &device) == devices_.end()) devices_.push_back(&device);
}

void CommLink::lose_device(const DeviceContext& device) {
  if (has_ended() || has_said_goodbye()) return;
  const auto is_left = [](const Device* one) { return !one->newest().context->is_gone(); };
  if (exchanges_reports_ && (std::ranges::any_of(devices_, is_left) || can_lose_devices())) return;
  cause_ = "the cause is at " + host_name() + ":" + device.ibdev() +
           ": the device was removed from its host, or has failed for good";
  send_end(wire::RejectCode::kFailed, cause_);
  set_state(State::kDeviceGone);
}

bool CommLink::die(const std::string& cause) {
  if (has_ended() || has_said_goodbye()) return false;
  cause_ = cause;
  set_state(State::kDead);
  return true;
}

}  // namespace beeline
