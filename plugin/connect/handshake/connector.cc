// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/handshake/connector.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "plugin/connect/handshake/agreement.h"
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

// "h1 mlx5_0:1", "h1 mlx5_0:1 (4 rails)".
std::string peer_text(const wire::Handle& handle) {
  const std::string first = handle.host + " " + handle.device;
  const int rails = handle.counts.rails;
  return rails == 1 ? first : first + " (" + std::to_string(rails) + " rails)";
}

// The sentence about a path, or about a comm with one path.
std::string cannot_make_text(const PendingComm& comm, std::uint8_t path, const std::string& why) {
  if (comm.has_one_path()) return "this end could not be made: " + why;
  return port_text(comm.device_of(path)) + ": " + why;
}

HandshakeFailure misfit(const PendingComm& comm, const std::string& why) {
  return {.text = "the answer of " + comm.peer + " does not fit what " + comm.own_name() +
                  " offered: " + why,
          .error = fail(Errc::kProtocol, "take the peer's ACCEPT").error};
}

}  // namespace

void Connector::start(AttemptOrder order) {
  const std::uint32_t comm = order.comm;
  PendingConnect pending;
  pending.devices = order.devices;
  pending.qp = options_for(order.settings, context_.options->qp);
  pending.peer = peer_text(order.handle);
  pending.layout = path_layout(rail_counts(pending.devices, pending.qp), order.handle.counts);
  log_layout(pending);
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
  if (!pending.end) {
    if (const Checked made = make_end(pending); !made) return fail_comm(comm, made.error());
  }
  const wire::Connect message = make_connect(pending);
  if (!pending.has_paths()) return fail_comm(comm, pending.no_path_left());
  pending.channel = channel.id();
  pending.state = ConnectState::kAwaitAccept;
  channel.send(message);
}

Checked Connector::make_end(PendingConnect& pending) {
  const auto failure = [&](const Error& error, std::uint8_t path) {
    const std::string why = describe(error) + memlock_advice(error);
    return HandshakeFailure{.text = cannot_make_text(pending, path, why), .error = error};
  };
  Result<CommEnd> end = CommEnd::create(context_.options->sender.of(pending.layout.count));
  if (!end) return fail(failure(end.error(), 0));
  pending.end = *std::move(end);
  std::vector<std::uint8_t> all(pending.layout.count);
  std::iota(all.begin(), all.end(), std::uint8_t{0});
  const RailPorts ports(pending, all, *context_.ports);
  for (const std::uint8_t path : all) {
    if (const auto facts = ports.facts(path); !facts) {
      const bool is_alone = pending.has_one_path();
      pending.leave_out(path, is_alone ? failure(facts.error().error, path) : facts.error());
      continue;
    }
    const Status added =
        pending.end->add_path(pending.layout.place(path), pending.device_of(path), pending.qp);
    if (!added) pending.leave_out(path, failure(added.error(), path));
  }
  return {};
}

wire::Connect Connector::make_connect(PendingConnect& pending) {
  wire::Connect message{.listener = pending.order.handle.listener,
                        .token = pending.order.handle.token,
                        .comm = pending.order.comm,
                        .counts = rail_counts(pending.devices, pending.qp)};
  for (const std::uint8_t number : pending.path_numbers()) {
    Checked added = add_offer(pending, number, message);
    if (!added) pending.leave_out(number, std::move(added.error()));
  }
  message.window = pending.end->window();
  message.missing = pending.missing_paths();
  return message;
}

Checked Connector::add_offer(PendingConnect& pending, std::uint8_t number, wire::Connect& message) {
  const PathSetup& path = pending.end->paths().at(number);
  const Device& device = path.device();
  const auto failure = [&](const Problem& problem) {
    return fail(HandshakeFailure{.text = cannot_make_text(pending, number, problem.text),
                                 .error = fail(problem.code, "connect", problem.sys_errno).error});
  };
  const Result<const PortFacts*> facts = context_.ports->facts(device);
  if (!facts) return failure(Problem(facts.error()));
  const PortSide ours{device, **facts, pending.qp};
  wire::PathOffer offer = make_offer(ours);
  offer.number = number;
  offer.qp = qp_facts(ours, path);
  if (is_cm_required(ours)) {
    const auto found = context_.cm->addresses(device);
    if (!found) return failure(Problem(Errc::kUnsupported, found.error().text));
    for (const NetdevAddress& own : *found) {
      if (offer.cm.addresses.size() == wire::kMaxCmAddresses) break;
      offer.cm.addresses.push_back(own.address);
    }
  }
  message.paths.push_back(std::move(offer));
  return {};
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
    fail_comm(comm, misfit(*pending, taken.error().text));
    return {};
  }
  if (!pending->has_paths()) {
    fail_comm(comm, pending->no_path_left());
    return {};
  }
  pending->state = ConnectState::kConnecting;
  connect_with_cm(comm);
  connect_paths(comm);
  return {};
}

Outcome<void> Connector::take_accept(PendingConnect& pending) {
  const wire::Accept& accept = pending.accept;
  BL_TRY(check_path_numbers(pending.layout, numbers_of(accept.paths), accept.missing));
  if (accept.window.length < context_.options->receiver.of(pending.layout.count).window_bytes) {
    return fail("its window is too small");
  }
  for (const wire::PathAnswer& answer : accept.paths) {
    if (pending.has_path(answer.number)) continue;
    return fail("it has path " + std::to_string(answer.number) + ", which was not offered");
  }
  for (const wire::MissingPath& path : accept.missing) {
    const Error error = fail(Errc::kSystem, "connect: the peer could not make its end").error;
    pending.leave_out(path.number, {.text = path.why, .error = error});
  }
  for (const wire::PathAnswer& answer : accept.paths) {
    const Outcome<void> taken = take_answer(pending, answer);
    if (!taken) pending.leave_out(answer.number, misfit(pending, taken.error().text));
  }
  return {};
}

Outcome<void> Connector::take_answer(PendingConnect& pending, const wire::PathAnswer& answer) {
  PathSetup& path = pending.end->paths().at(answer.number);
  const PortFacts* const facts = BL_TRY(context_.ports->facts(path.device()));
  path.set_route(BL_TRY(route_of({path.device(), *facts, pending.qp}, answer)));
  return {};
}

void Connector::connect_with_cm(std::uint32_t comm) {
  for (std::size_t i = 0; comms_.contains(comm) && i < comms_.at(comm).accept.paths.size(); ++i) {
    PendingConnect& pending = comms_.at(comm);
    const wire::PathAnswer& answer = pending.accept.paths[i];
    if (!answer.cm || !pending.has_path(answer.number)) continue;
    PathSetup& path = pending.end->paths().at(answer.number);
    const auto setup = std::make_shared<CmActiveSetup>(
        *context_.cm, path, context_.options->qp,
        CmActiveSetup::Target{.destination = *answer.cm,
                              .peer = pending.order.handle.host + " " + answer.qp.device,
                              .reads = path.route().reads,
                              .traffic_class = answer.traffic_class},
        on_cm_done(comm, answer.number));
    pending.cm[answer.number] = setup;
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
  channel.send(wire::Ready{.comm = pending.accept.our_comm,
                           .paths = pending.path_numbers(),
                           .missing = pending.missing_paths()});
  MadeConnection made =
      take(comm, pending.accept.our_comm, channel, Role::kSend, pending.accept.window);
  comms_.erase(comm);
  // If the comm was abandoned in the meantime, the connection's destructor notifies the peer.
  const MadeConnection unwanted = context_.mailbox->deliver_connected(comm, std::move(made));
}

bool Connector::on_reject(const Channel& channel, const wire::Reject& reject) {
  const PendingConnect* const pending = find(channel, reject.comm);
  if (pending == nullptr) return forget_abandoned(channel, reject.comm);
  fail_comm(reject.comm, {.text = pending->order.handle.host + " rejected it: " + reject.text,
                          .error = error_of(reject.code)});
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
      fail_comm(comm, {.text = cause, .error = fail(Errc::kPeerClosed, "connect").error});
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
  fail_comm(comm, {.text = found->second.order.handle.host + " rejected it: " + text,
                   .error = error_of(wire::RejectCode::kUnknownListener)});
}

void Connector::on_dial_failed(const wire::ProcessId& process, const Error& error,
                               const std::string& text) {
  for (const std::uint32_t comm : waiting_for(process)) {
    fail_comm(comm, {.text = text, .error = error});
  }
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
  fail_comm(comm, {.text = text, .error = fail(Errc::kTimeout, "connect").error});
}

void Connector::fail_comm(std::uint32_t comm, const HandshakeFailure& failure) {
  const auto found = comms_.find(comm);
  const PendingConnect pending = std::move(found->second);
  comms_.erase(found);
  BL_WARN("connect from %s to %s failed: %s", pending.own_name().c_str(), pending.peer.c_str(),
          failure.text.c_str());
  const Channel* const channel = channel_of(pending);
  if (channel != nullptr && !pending.accept.paths.empty()) {
    channel->send(wire::Reject{
        .comm = pending.accept.our_comm, .code = wire::RejectCode::kFailed, .text = failure.text});
  }
  context_.mailbox->fail_connect(comm, failure.error);
}

}  // namespace beeline
