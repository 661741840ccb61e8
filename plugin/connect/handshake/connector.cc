// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/handshake/connector.h"

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/base/log.h"

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

}  // namespace

void Connector::start(AttemptOrder order) {
  const std::uint32_t comm = order.comm;
  PendingConnect pending;
  pending.devices = order.devices;
  pending.qp = options_for(order.settings, context_.options->qp);
  pending.peer = peer_text(order.handle);
  pending.layout = path_layout(rail_counts(pending.devices, pending.qp), order.handle.counts);
  log_layout(pending);
  pending.slot = slot_of(order);
  pending.called_ns = now_ns();
  pending.order = std::move(order);
  add(comm, std::move(pending));
  need_channel(comm);
}

StatsSlot Connector::slot_of(const AttemptOrder& order) const {
  CommSlots* const slots = context_.options->slots;
  if (slots == nullptr) return {};
  StatsSlot slot = slots->acquire(SlotRole::kSend, order.devices);
  const wire::Handle& peer = order.handle;
  slot.set_peer(peer.host, peer.device, {.pid = 0, .ours = order.comm, .theirs = peer.listener});
  slot.set_peer_identity(identity_of(peer.process));
  slot.set_wait(Wait::kConnect, now_ns(), 0);
  return slot;
}

void Connector::look_at_calls(std::int64_t now_ns) {
  for (auto& [comm, pending] : comms_) {
    if (context_.mailbox->take_call(comm)) {
      pending.called_ns = now_ns;
      if (pending.slot.waits_for() == Wait::kNothing) {
        pending.slot.set_wait(Wait::kConnect, now_ns, 0);
      }
    } else if (now_ns - pending.called_ns > kNotCalledNs) {
      pending.slot.set_wait(Wait::kNothing, 0, 0);
    }
  }
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
  if (channel == nullptr) {
    // A channel that is lost is dialed already. When it is back, or given up, resume() is called.
    if (!context_.channels->is_redialing(process)) dialer_->dial(process);
    return;
  }
  send_connect(comm, pending, *channel);
}

void Connector::send_connect(std::uint32_t comm, PendingConnect& pending, Channel& channel) {
  if (!pending.end) {
    if (const Checked made = make_end(pending); !made) return fail_comm(comm, made.error());
  }
  const wire::Connect message = make_connect(pending);
  channel.send(message);  // also without paths: else the peer's accept() would wait for ever
  if (!pending.has_paths()) return fail_comm(comm, pending.no_path_left());
  pending.channel = channel.id();
  pending.state = ConnectState::kAwaitAccept;
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
  PendingConnect& pending = comms_.at(comm);
  wire::Ready ready{.comm = pending.accept.our_comm,
                    .paths = pending.path_numbers(),
                    .missing = pending.missing_paths()};
  channel.send(ready);
  MadeConnection made =
      make_linked(comm, pending.accept.our_comm, channel, Role::kSend, pending.accept.window);
  if (channel.resume() != nullptr) channel.links().keep_ready(comm, std::move(ready));
  made->slot = std::move(pending.slot);
  name_peer(made->slot, *made->link);
  made->slot.set_wait(Wait::kNothing, 0, 0);  // the application has to take it
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

// A comm that has its ACCEPT goes on: READY is sent again when the channel is back.
void Connector::on_channel_lost(const Channel& channel, const std::string& cause) {
  std::erase_if(abandoned_, [&](const auto& entry) { return entry.second == channel.id(); });
  for (const std::uint32_t comm : comms_on(channel)) {
    if (comms_.at(comm).state == ConnectState::kAwaitAccept) connect_again(comm, cause);
  }
}

void Connector::on_channel_end(const Channel& channel, const std::string& cause) {
  std::erase_if(abandoned_, [&](const auto& entry) { return entry.second == channel.id(); });
  for (const std::uint32_t comm : comms_on(channel)) connect_again(comm, cause);
}

void Connector::connect_again(std::uint32_t comm, const std::string& cause) {
  PendingConnect& pending = comms_.at(comm);
  if (pending.state == ConnectState::kAwaitAccept && ++pending.lost_channels <= kMaxLostChannels) {
    need_channel(comm);
  } else {
    fail_comm(comm, {.text = cause, .error = fail(Errc::kPeerClosed, "connect").error});
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
  PendingConnect pending = std::move(found->second);
  comms_.erase(found);
  pending.slot.record(Event::kFailed, static_cast<std::uint32_t>(failure.error.code),
                      static_cast<std::uint64_t>(failure.error.sys_errno));
  pending.slot.set_state(SlotState::kFailed);
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
