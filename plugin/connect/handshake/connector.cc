// SPDX-License-Identifier: Apache-2.0
//
// The states of a connect.
#include "plugin/connect/handshake/connector.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "plugin/connect/path/wire_conversion.h"
#include "plugin/device/memlock.h"

namespace beeline {
namespace {

// A channel may end under a CONNECT, since the peer closes what it does not need. Not many times.
constexpr int kMostLostChannels = 5;
// For the peer to answer a CONNECT that nobody waits for any more, and to be told so. Its process
// may be stopped, which must not keep our thread.
constexpr std::int64_t kAnswerNs = 2 * kNsPerSec;

std::string duration_text(std::chrono::milliseconds time) {
  if (time.count() % 1000 != 0) return std::to_string(time.count()) + " ms";
  return std::to_string(time.count() / 1000) + " s";
}

std::string peer_text(const wire::Handle& handle) { return handle.host + " " + handle.device; }

Error error_of(wire::RejectCode code) {
  switch (code) {
    case wire::RejectCode::kNotInvited:
      return fail(Errc::kPeerClosed, "connect: the listener is closed").error;
    case wire::RejectCode::kIncompatible:
      return fail(Errc::kUnsupported, "connect: the devices do not fit").error;
    case wire::RejectCode::kFailed:
      return fail(Errc::kSystem, "connect: the peer could not make its end").error;
    case wire::RejectCode::kAbandoned:
      return fail(Errc::kPeerClosed, "connect: the peer gave up").error;
  }
  return fail(Errc::kProtocol, "connect").error;
}

}  // namespace

void Connector::start(AttemptOrder order) {
  const std::uint32_t comm = order.comm;
  const Patience patience(*context_.poller, context_.options->connect_timeout);
  watch_patience(comm, patience.left_ns(*context_.poller, 0));
  const QpOptions qp = options_for(order.settings, context_.options->qp);
  attempts_.emplace(comm, Attempt{.order = std::move(order), .qp = qp, .patience = patience});
  need_channel(comm);
}

void Connector::abandon(std::uint32_t comm) {
  const auto found = attempts_.find(comm);
  if (found == attempts_.end()) return;  // it has ended by itself
  const Attempt attempt = std::move(found->second);
  attempts_.erase(found);
  BL_INFO(kLogNet, "connect from %s to %s is given up", label(*attempt.order.device).c_str(),
          peer_text(attempt.order.handle).c_str());
  const wire::ProcessId& process = attempt.order.handle.process;
  Channel* const channel = context_.channels->find(attempt.channel);
  switch (attempt.state) {
    case State::kNeedChannel:
      if (!invitation(process)) dialer_->cancel(process);
      return;
    case State::kAwaitAccept:
      // What to call it the peer has not said yet.
      abandoned_.emplace(comm, attempt.channel);
      context_.poller->at(now_ns() + kAnswerNs, [this, comm] { abandoned_.erase(comm); });
      return;
    case State::kConnecting:
      if (channel != nullptr) refuse_accept(*channel, attempt.accept.our_comm);
      return;
  }
}

void Connector::refuse_accept(Channel& channel, std::uint32_t their_comm) {
  channel.send(wire::Reject{.comm = their_comm,
                            .code = wire::RejectCode::kAbandoned,
                            .text = "nobody waits for it any more"});
}

void Connector::need_channel(std::uint32_t comm) {
  Attempt& attempt = attempts_.at(comm);
  attempt.state = State::kNeedChannel;
  const wire::ProcessId& process = attempt.order.handle.process;
  Channel* const channel = context_.channels->find_process(process);
  if (channel == nullptr) return dialer_->dial(process);
  offer(attempt, *channel);
}

void Connector::offer(Attempt& attempt, Channel& channel) {
  Result<wire::Connect> message = make_offer_message(attempt);
  if (!message) {
    return fail_attempt(attempt.order.comm, message.error(),
                        "this end could not be made: " + describe(message.error()) +
                            memlock_advice(message.error()));
  }
  if (const auto able = offer_cm(attempt, message->paths[0]); !able) {
    return fail_attempt(attempt.order.comm, fail(Errc::kUnsupported, "connect").error,
                        able.error());
  }
  attempt.channel = channel.id();
  attempt.state = State::kAwaitAccept;
  channel.send(*message);
}

Result<wire::Connect> Connector::make_offer_message(Attempt& attempt) {
  const ControlOptions& options = *context_.options;
  const Device& device = *attempt.order.device;
  const PortSide ours{device, *BL_TRY(context_.ports->facts(device)), attempt.qp};
  if (!attempt.endpoint) {
    attempt.endpoint = BL_TRY(Endpoint::create(device, options.sender, attempt.qp));
  }
  wire::Connect message{.listener = attempt.order.handle.listener,
                        .token = attempt.order.handle.token,
                        .comm = attempt.order.comm,
                        .window = attempt.endpoint->window()};
  wire::PathOffer& path = message.paths.emplace_back(make_offer(ours));
  path.qp = qp_facts(ours, *attempt.endpoint);
  return message;
}

// An end that needs the connection manager says so only when it has it.
Result<void, std::string> Connector::offer_cm(const Attempt& attempt, wire::PathOffer& path) {
  const Device& device = *attempt.order.device;
  if (!needs_cm({device, device.facts, attempt.qp})) return {};
  for (const NetdevAddress& own : BL_TRY(context_.cm->addresses(device))) {
    if (path.cm.addresses.size() < wire::kMaxCmAddresses) path.cm.addresses.push_back(own.address);
  }
  return {};
}

Connector::Attempt* Connector::find(const Channel& channel, std::uint32_t comm) {
  const auto found = attempts_.find(comm);
  if (found == attempts_.end() || found->second.state == State::kNeedChannel) return nullptr;
  return found->second.channel == channel.id() ? &found->second : nullptr;
}

Status Connector::on_accept(Channel& channel, wire::Accept accept) {
  Attempt* const attempt = find(channel, accept.comm);
  if (attempt == nullptr) {
    refuse_accept(channel, accept.our_comm);
    forget_abandoned(channel, accept.comm);
    return {};
  }
  if (attempt->state != State::kAwaitAccept) return fail(Errc::kProtocol, "take an ACCEPT again");
  attempt->accept = std::move(accept);
  const Result<void, std::string> taken = take_accept(*attempt);
  if (!taken) {
    fail_attempt(attempt->order.comm, fail(Errc::kProtocol, "take the peer's ACCEPT").error,
                 "the answer does not fit what was offered: " + taken.error());
    return {};
  }
  attempt->state = State::kConnecting;
  if (attempt->accept.paths[0].cm) {
    dial_cm(attempt->order.comm, *attempt);
  } else {
    connect(attempt->order.comm);
  }
  return {};
}

void Connector::dial_cm(std::uint32_t comm, Attempt& attempt) {
  const wire::PathAnswer& answer = attempt.accept.paths[0];
  const auto done = [this, comm](const Result<void, std::string>& outcome) {
    if (!outcome) {
      return fail_attempt(comm, fail(Errc::kSystem, "connect").error, outcome.error());
    }
    Attempt& connected = attempts_.at(comm);  // it has the dial, and so is there
    // Cannot be missing: an attempt in this state ends with its channel.
    Channel* const channel = context_.channels->find(connected.channel);
    if (channel != nullptr) deliver(connected, *channel);
  };
  attempt.dial = std::make_shared<CmDial>(
      *context_.cm, *attempt.endpoint, context_.options->qp,
      CmDial::Target{.invitation = *answer.cm,
                     .peer = attempt.order.handle.host + " " + answer.qp.device,
                     .reads = attempt.route.reads,
                     .traffic_class = answer.traffic_class},
      done);
  const std::shared_ptr<CmDial> dial = attempt.dial;  // it may fail at once
  dial->start();
}

Result<void, std::string> Connector::take_accept(Attempt& attempt) {
  const wire::Accept& accept = attempt.accept;
  if (accept.paths.size() != 1) return fail(std::string("another number of paths than offered"));
  if (accept.window.length < context_.options->receiver.window_bytes) {
    return fail(std::string("a window that is too small"));
  }
  const Device& device = *attempt.order.device;
  const Result<const PortFacts*> facts = context_.ports->facts(device);
  if (!facts) return fail(describe(facts.error()));
  attempt.route = BL_TRY(route_of({device, **facts, attempt.qp}, accept.paths[0]));
  return {};
}

void Connector::connect(std::uint32_t comm) {
  const auto found = attempts_.find(comm);
  if (found == attempts_.end()) return;  // the other end was silent for too long
  Attempt& attempt = found->second;
  // Cannot be missing: an attempt in this state ends with its channel.
  Channel* const channel = context_.channels->find(attempt.channel);
  if (channel == nullptr) return;
  const Status connected = attempt.endpoint->connect(attempt.route, attempt.qp);
  if (connected) return deliver(attempt, *channel);
  if (connected.error().code == Errc::kTimeout) {
    context_.poller->at(now_ns() + Endpoint::kResolveAgainNs, [this, comm] { connect(comm); });
    return;
  }
  fail_attempt(comm, connected.error(), describe(connected.error()));
}

void Connector::deliver(Attempt& attempt, Channel& channel) {
  const wire::PathAnswer& path = attempt.accept.paths[0];
  channel.send(wire::Ready{.comm = attempt.accept.our_comm});
  auto made = std::make_unique<Connection>(
      std::move(*attempt.endpoint)
          .finish(Role::kSend, attempt.accept.window, path.notify, path.qp));
  made->link = channel.make_link(attempt.order.comm, attempt.accept.our_comm, made->paths[0],
                                 context_.mailbox);
  BL_INFO(kLogNet, "connected %s to %s, qp %u to %u", label(*attempt.order.device).c_str(),
          made->link->peer().text().c_str(), made->paths[0].queues.qp->qp_num, path.qp.qpn);
  const std::uint32_t comm = attempt.order.comm;
  attempts_.erase(comm);
  // Whom nobody wants any more tells the peer when it is destroyed.
  const MadeConnection unwanted = context_.mailbox->deliver_connected(comm, std::move(made));
}

bool Connector::on_reject(const Channel& channel, const wire::Reject& reject) {
  const Attempt* const attempt = find(channel, reject.comm);
  if (attempt == nullptr) return forget_abandoned(channel, reject.comm);
  fail_attempt(reject.comm, error_of(reject.code), "the peer turned it down: " + reject.text);
  return true;
}

bool Connector::forget_abandoned(const Channel& channel, std::uint32_t comm) {
  const auto found = abandoned_.find(comm);
  if (found == abandoned_.end() || found->second != channel.id()) return false;
  abandoned_.erase(found);
  return true;
}

bool Connector::uses(const Channel& channel) const noexcept {
  const auto on_it = [&](const auto& entry) { return entry.second == channel.id(); };
  return std::ranges::any_of(abandoned_, on_it) ||
         std::ranges::any_of(attempts_, [&](const auto& entry) {
           return entry.second.state != State::kNeedChannel && entry.second.channel == channel.id();
         });
}

void Connector::on_channel(const Channel& channel) {
  std::vector<std::uint32_t> waiting;
  for (const auto& [comm, attempt] : attempts_) {
    if (attempt.state == State::kNeedChannel && attempt.order.handle.process == channel.peer().id) {
      waiting.push_back(comm);
    }
  }
  for (const std::uint32_t comm : waiting) need_channel(comm);
}

void Connector::on_channel_end(const Channel& channel, const std::string& cause) {
  std::erase_if(abandoned_, [&](const auto& entry) { return entry.second == channel.id(); });
  std::vector<std::uint32_t> on_it;
  for (const auto& [comm, attempt] : attempts_) {
    if (attempt.state != State::kNeedChannel && attempt.channel == channel.id()) {
      on_it.push_back(comm);
    }
  }
  for (const std::uint32_t comm : on_it) {
    Attempt& attempt = attempts_.at(comm);
    if (attempt.state == State::kAwaitAccept && ++attempt.lost_channels <= kMostLostChannels) {
      need_channel(comm);
    } else {
      fail_attempt(comm, fail(Errc::kPeerClosed, "connect").error, cause);
    }
  }
}

std::optional<Invitation> Connector::invitation(const wire::ProcessId& process) const {
  for (const auto& [comm, attempt] : attempts_) {
    if (attempt.state == State::kNeedChannel && attempt.order.handle.process == process) {
      return Invitation{.comm = comm, .handle = attempt.order.handle};
    }
  }
  return std::nullopt;
}

void Connector::on_not_invited(std::uint32_t comm, const std::string& text) {
  if (!attempts_.contains(comm)) return;
  fail_attempt(comm, error_of(wire::RejectCode::kNotInvited), "the peer turned it down: " + text);
}

void Connector::on_no_way(const wire::ProcessId& process, const Error& error,
                          const std::string& text) {
  std::vector<std::uint32_t> waiting;
  for (const auto& [comm, attempt] : attempts_) {
    if (attempt.state == State::kNeedChannel && attempt.order.handle.process == process) {
      waiting.push_back(comm);
    }
  }
  for (const std::uint32_t comm : waiting) fail_attempt(comm, error, text);
}

void Connector::watch_patience(std::uint32_t comm, std::int64_t left_ns) {
  context_.poller->at(now_ns() + left_ns, [this, comm] { on_silence(comm); });
}

void Connector::on_silence(std::uint32_t comm) {
  const auto found = attempts_.find(comm);
  if (found == attempts_.end()) return;
  const Channel* const channel = context_.channels->find(found->second.channel);
  const std::int64_t left = found->second.patience.left_ns(
      *context_.poller, channel == nullptr ? 0 : channel->progress_ns());
  if (left > 0) return watch_patience(comm, left);
  const std::string limit = " within " + duration_text(context_.options->connect_timeout);
  const Error error = fail(Errc::kTimeout, "connect").error;
  switch (found->second.state) {
    case State::kNeedChannel:
      return fail_attempt(comm, error,
                          "no control channel" + limit + " (" +
                              dialer_->trouble(found->second.order.handle.process) + ")");
    case State::kAwaitAccept: return fail_attempt(comm, error, "the peer did not answer" + limit);
    case State::kConnecting:
      if (found->second.dial != nullptr) {
        return fail_attempt(comm, error, found->second.dial->overdue_text(limit.substr(1)));
      }
      return fail_attempt(
          comm, error,
          "the address of " + peer_text(found->second.order.handle) + " was not resolved" + limit);
  }
}

void Connector::fail_attempt(std::uint32_t comm, const Error& error, const std::string& text) {
  const auto found = attempts_.find(comm);
  const Attempt attempt = std::move(found->second);
  attempts_.erase(found);
  BL_WARN("connect from %s %s to %s failed: %s", host_name().c_str(),
          label(*attempt.order.device).c_str(), peer_text(attempt.order.handle).c_str(),
          text.c_str());
  Channel* const channel = context_.channels->find(attempt.channel);
  if (channel != nullptr && !attempt.accept.paths.empty()) {
    channel->send(wire::Reject{
        .comm = attempt.accept.our_comm, .code = wire::RejectCode::kFailed, .text = text});
  }
  context_.mailbox->fail_connect(comm, error);
}

}  // namespace beeline
