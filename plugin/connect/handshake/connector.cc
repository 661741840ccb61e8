// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/handshake/connector.h"

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "plugin/device/memlock.h"

namespace beeline {
namespace {

// The peer may close an unused channel while a CONNECT is on its way. After so many losses the
// cause must be another.
constexpr int kMaxLostChannels = 5;
// How long an abandoned connect waits for the peer's answer in order to reject it. The control
// thread must end even if the peer's process is stopped.
constexpr std::int64_t kAbandonedNs = 2 * kNsPerSec;

Error error_of(wire::RejectCode code) {
  switch (code) {
    case wire::RejectCode::kUnknownListener:
      return fail(Errc::kPeerClosed, "connect: the listener is closed").error;
    case wire::RejectCode::kIncompatible:
      return fail(Errc::kUnsupported, "connect: the two devices cannot be connected").error;
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
  PendingConnect pending;
  pending.devices = order.devices;
  pending.qp = options_for(order.settings, context_.options->qp);
  pending.peer = order.handle.host + " " + order.handle.device;
  pending.order = std::move(order);
  add(comm, std::move(pending));
  need_channel(comm);
}

void Connector::abandon(std::uint32_t comm) {
  const auto found = comms_.find(comm);
  if (found == comms_.end()) return;  // it has failed, or has been delivered
  const PendingConnect pending = std::move(found->second);
  comms_.erase(found);
  BL_INFO(kLogNet, "connect from %s to %s is abandoned: its caller has given up",
          pending.own_name().c_str(), pending.peer.c_str());
  const wire::ProcessId& process = pending.order.handle.process;
  Channel* const channel = channel_of(pending);
  switch (pending.state) {
    case ConnectState::kNeedChannel:
      if (!dial_target(process)) dialer_->cancel(process);
      return;
    case ConnectState::kAwaitAccept:
      // A REJECT needs the peer's number of the comm, which comes with its answer.
      abandoned_.emplace(comm, pending.channel);
      context_.poller->at(now_ns() + kAbandonedNs, [this, comm] { abandoned_.erase(comm); });
      return;
    case ConnectState::kConnecting:
      if (channel != nullptr) reject_accept(*channel, pending.accept.our_comm);
      return;
  }
}

void Connector::reject_accept(Channel& channel, std::uint32_t peer_comm) {
  channel.send(wire::Reject{.comm = peer_comm,
                            .code = wire::RejectCode::kAbandoned,
                            .text = host_name() + " has given up this connect"});
}

void Connector::need_channel(std::uint32_t comm) {
  PendingConnect& pending = comms_.at(comm);
  pending.state = ConnectState::kNeedChannel;
  pending.channel = 0;
  const wire::ProcessId& process = pending.order.handle.process;
  Channel* const channel = context_.channels->find_process(process);
  if (channel == nullptr) return dialer_->dial(process);
  send_connect(comm, pending, *channel);
}

void Connector::send_connect(std::uint32_t comm, PendingConnect& pending, Channel& channel) {
  const ControlOptions& options = *context_.options;
  const CommPlan& plan = options.sender.of(pending.devices.size());
  const Status made = pending.end ? Status() : make_end(pending, plan, *context_.ports);
  if (!made) {
    return fail_comm(
        comm, made.error(),
        "this end could not be made: " + describe(made.error()) + memlock_advice(made.error()));
  }
  const Outcome<wire::Connect> message = make_connect(pending);
  if (!message) {
    const Problem& problem = message.error();
    return fail_comm(comm, fail(problem.code, "connect", problem.sys_errno).error,
                     "this end could not be made: " + problem.text);
  }
  pending.channel = channel.id();
  pending.state = ConnectState::kAwaitAccept;
  channel.send(*message);
}

Outcome<wire::Connect> Connector::make_connect(PendingConnect& pending) {
  wire::Connect message{.listener = pending.order.handle.listener,
                        .token = pending.order.handle.token,
                        .comm = pending.order.comm,
                        .window = pending.end->window()};
  for (const PathSetup& path : pending.end->paths()) {
    message.paths.push_back(BL_TRY(make_path_offer(pending, path)));
  }
  return message;
}

Outcome<wire::PathOffer> Connector::make_path_offer(const PendingConnect& pending,
                                                    const PathSetup& path) {
  const Device& device = path.device();
  const PortSide ours{device, *BL_TRY(context_.ports->facts(device)), pending.qp};
  wire::PathOffer offer = make_offer(ours);
  offer.qp = qp_facts(ours, path);
  if (!is_cm_required(ours)) return offer;
  const auto found = context_.cm->addresses(device);
  if (!found) return fail(Problem(Errc::kUnsupported, found.error().text));
  for (const NetdevAddress& own : *found) {
    if (offer.cm.addresses.size() < wire::kMaxCmAddresses) {
      offer.cm.addresses.push_back(own.address);
    }
  }
  return offer;
}

Status Connector::on_accept(Channel& channel, wire::Accept accept) {
  const std::uint32_t comm = accept.comm;
  PendingConnect* const pending = find(channel, comm);
  if (pending == nullptr) {
    reject_accept(channel, accept.our_comm);
    forget_abandoned(channel, comm);
    return {};
  }
  if (pending->state != ConnectState::kAwaitAccept) {
    return fail(Errc::kProtocol, "take an ACCEPT again");
  }
  pending->accept = std::move(accept);
  if (const Outcome<void> taken = take_accept(*pending); !taken) {
    fail_comm(comm, fail(Errc::kProtocol, "take the peer's ACCEPT").error,
              "the answer of " + pending->peer + " does not fit what " + pending->own_name() +
                  " offered: " + taken.error().text);
    return {};
  }
  pending->state = ConnectState::kConnecting;
  connect_with_cm(comm);
  connect_paths(comm);
  return {};
}

Outcome<void> Connector::take_accept(PendingConnect& pending) {
  const wire::Accept& accept = pending.accept;
  BL_TRY(check_path_count(pending.end->paths().size(), accept.paths.size()));
  if (accept.window.length < context_.options->receiver.of(1).window_bytes) {
    return fail("its window is too small");
  }
  for (std::size_t rail = 0; rail < accept.paths.size(); ++rail) {
    PathSetup& path = pending.end->paths()[rail];
    const Device& device = path.device();
    const PortFacts* const facts = BL_TRY(context_.ports->facts(device));
    path.set_route(BL_TRY(route_of({device, *facts, pending.qp}, accept.paths[rail])));
  }
  return {};
}

void Connector::connect_with_cm(std::uint32_t comm) {
  for (std::size_t rail = 0; comms_.contains(comm) && rail < comms_.at(comm).cm.size(); ++rail) {
    PendingConnect& pending = comms_.at(comm);
    const wire::PathAnswer& answer = pending.accept.paths[rail];
    if (!answer.cm) continue;
    PathSetup& path = pending.end->paths()[rail];
    const auto setup = std::make_shared<CmActiveSetup>(
        *context_.cm, path, context_.options->qp,
        CmActiveSetup::Target{.destination = *answer.cm,
                              .peer = pending.order.handle.host + " " + answer.qp.device,
                              .reads = path.route().reads,
                              .traffic_class = answer.traffic_class},
        on_cm_done(comm));
    pending.cm[rail] = setup;
    setup->start();  // may fail at once, and the comm with it
  }
}

void Connector::advance(std::uint32_t comm) {
  const PendingConnect& pending = comms_.at(comm);
  Channel* const channel = channel_of(pending);
  if (channel != nullptr && pending.end->is_connected()) deliver(comm, *channel);
}

void Connector::deliver(std::uint32_t comm, Channel& channel) {
  const PendingConnect& pending = comms_.at(comm);
  channel.send(wire::Ready{.comm = pending.accept.our_comm, .paths = {0}});
  MadeConnection made =
      make_linked(comm, pending.accept.our_comm, channel, Role::kSend, pending.accept.window);
  for (const PathResources& path : made->paths) {
    BL_INFO(kLogNet, "connected %s to %s, qp %u to %u", label(*path.device).c_str(),
            made->link->peer().text().c_str(), path.queues.qp->qp_num, path.peer_qpn);
  }
  comms_.erase(comm);
  // If the comm was abandoned in the meantime, the connection's destructor notifies the peer.
  const MadeConnection unwanted = context_.mailbox->deliver_connected(comm, std::move(made));
}

bool Connector::on_reject(const Channel& channel, const wire::Reject& reject) {
  const PendingConnect* const pending = find(channel, reject.comm);
  if (pending == nullptr) return forget_abandoned(channel, reject.comm);
  fail_comm(reject.comm, error_of(reject.code),
            pending->order.handle.host + " rejected it: " + reject.text);
  return true;
}

bool Connector::forget_abandoned(const Channel& channel, std::uint32_t comm) {
  const auto found = abandoned_.find(comm);
  if (found == abandoned_.end() || found->second != channel.id()) return false;
  abandoned_.erase(found);
  return true;
}

bool Connector::is_using(const Channel& channel) const noexcept {
  const bool has_abandoned = std::ranges::any_of(
      abandoned_, [&](const auto& entry) { return entry.second == channel.id(); });
  // Connects that waited for the channel send their first message only when their turn comes.
  return HandshakeEnd::is_using(channel) || has_abandoned ||
         !waiting_for(channel.peer().id).empty();
}

std::vector<std::uint32_t> Connector::waiting_for(const wire::ProcessId& process) const {
  std::vector<std::uint32_t> comms;
  for (const auto& [comm, pending] : comms_) {
    const bool is_waiting = pending.state == ConnectState::kNeedChannel;
    if (is_waiting && pending.order.handle.process == process) comms.push_back(comm);
  }
  return comms;
}

bool Connector::resume(std::uint32_t comm) {
  const auto found = comms_.find(comm);
  if (found == comms_.end()) return false;
  if (found->second.state == ConnectState::kNeedChannel) need_channel(comm);
  return true;
}

void Connector::on_channel_end(const Channel& channel, const std::string& cause) {
  std::erase_if(abandoned_, [&](const auto& entry) { return entry.second == channel.id(); });
  for (const std::uint32_t comm : comms_on(channel)) {
    PendingConnect& pending = comms_.at(comm);
    if (pending.state == ConnectState::kAwaitAccept &&
        ++pending.lost_channels <= kMaxLostChannels) {
      need_channel(comm);
    } else {
      fail_comm(comm, fail(Errc::kPeerClosed, "connect").error, cause);
    }
  }
}

std::optional<DialTarget> Connector::dial_target(const wire::ProcessId& process) const {
  const std::vector<std::uint32_t> comms = waiting_for(process);
  if (comms.empty()) return std::nullopt;
  return DialTarget{.comm = comms.front(), .handle = comms_.at(comms.front()).order.handle};
}

void Connector::on_unknown_listener(std::uint32_t comm, const std::string& text) {
  const auto found = comms_.find(comm);
  if (found == comms_.end()) return;
  fail_comm(comm, error_of(wire::RejectCode::kUnknownListener),
            found->second.order.handle.host + " rejected it: " + text);
}

void Connector::on_dial_failed(const wire::ProcessId& process, const Error& error,
                               const std::string& text) {
  for (const std::uint32_t comm : waiting_for(process)) fail_comm(comm, error, text);
}

void Connector::on_timeout(std::uint32_t comm) {
  const PendingConnect& pending = comms_.at(comm);
  const std::string limit = timeout_limit_text(*context_.options);
  std::string text;
  switch (pending.state) {
    case ConnectState::kNeedChannel:
      text = "no control channel to " + pending.order.handle.host + " " + limit + " (" +
             dialer_->last_error(pending.order.handle.process) + ")";
      break;
    case ConnectState::kAwaitAccept: text = pending.peer + " did not answer " + limit; break;
    case ConnectState::kConnecting: text = connecting_timeout_text(pending, limit); break;
  }
  fail_comm(comm, fail(Errc::kTimeout, "connect").error, text);
}

void Connector::fail_comm(std::uint32_t comm, const Error& error, const std::string& text) {
  const auto found = comms_.find(comm);
  const PendingConnect pending = std::move(found->second);
  comms_.erase(found);
  BL_WARN("connect from %s to %s failed: %s", pending.own_name().c_str(), pending.peer.c_str(),
          text.c_str());
  const Channel* const channel = channel_of(pending);
  if (channel != nullptr && !pending.accept.paths.empty()) {
    channel->send(wire::Reject{
        .comm = pending.accept.our_comm, .code = wire::RejectCode::kFailed, .text = text});
  }
  context_.mailbox->fail_connect(comm, error);
}

}  // namespace beeline
