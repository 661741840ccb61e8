// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/handshake/acceptor.h"

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "plugin/connect/path/wire_conversion.h"

namespace beeline {
namespace {

// "h1 mlx5_0 port 1, mlx5_1 port 1".
std::string offered_ports(const wire::Connect& connect, const std::string& host) {
  std::vector<std::string> ports;
  for (const wire::PathOffer& offer : connect.paths) {
    std::string port = offer.qp.device + " port " + std::to_string(offer.qp.port);
    if (std::ranges::find(ports, port) == ports.end()) ports.push_back(std::move(port));
  }
  std::string text = host;
  for (std::size_t i = 0; i < ports.size(); ++i) text += (i == 0 ? " " : ", ") + ports[i];
  return text;
}

}  // namespace

void Acceptor::on_connect(Channel& channel, wire::Connect connect) {
  const std::uint32_t peer_comm = connect.comm;
  if (channel.was_lost()) forget_earlier(channel, peer_comm);
  const auto listener = context_.mailbox->find_listener(connect.listener, connect.token);
  if (!listener) {
    channel.send(wire::Reject{.comm = peer_comm,
                              .code = wire::RejectCode::kUnknownListener,
                              .text = "no such listener on " + host_name() + ": it is closed"});
    return;
  }
  const std::uint32_t comm = context_.mailbox->next_comm();
  PendingAccept pending;
  pending.devices = listener->devices;
  pending.qp = options_for(listener->settings, context_.options->qp);
  pending.peer_host = channel.peer().host;
  pending.peer = offered_ports(connect, pending.peer_host);
  pending.layout = path_layout(rail_counts(pending.devices, pending.qp), connect.counts);
  pending.flow_labels = random_flow_labels();
  pending.channel = channel.id();
  pending.connect = std::move(connect);
  PendingAccept& added = add(comm, std::move(pending));
  at_listener_[added.connect.listener].insert(comm);
  if (const Checked checked = check_limits(added, listener->unaccepted); !checked) {
    return refuse(comm, checked.error());
  }
  limit_waiting(added.connect.listener);
  if (const Checked checked = check(added); !checked) return fail_comm(comm, checked.error());
  log_layout(added);
  if (const Checked made = make(comm, added); !made) return fail_comm(comm, made.error());
  connect_paths(comm);
}

Checked Acceptor::check(const PendingAccept& pending) const {
  const auto incompatible = [&](const std::string& text) {
    return fail(
        HandshakeFailure{wire::RejectCode::kIncompatible, text, accept_error(Errc::kUnsupported)});
  };
  const wire::Connect& connect = pending.connect;
  const Outcome<void> numbers =
      check_path_numbers(pending.layout, numbers_of(connect.paths), connect.missing);
  if (!numbers) {
    return incompatible("the offer of " + pending.peer + " does not fit " + pending.own_name() +
                        ": " + numbers.error().text);
  }
  if (pending.connect.window.length <
      context_.options->sender.of(pending.layout.count).window_bytes) {
    return incompatible("the window of " + pending.peer + " is too small for " +
                        pending.own_name());
  }
  return {};
}

Checked Acceptor::check_limits(const PendingAccept& pending, std::size_t unaccepted) const {
  const PeerLimits& limits = context_.options->limits;
  const auto full = [](const std::string& text) {
    return fail(
        HandshakeFailure{wire::RejectCode::kAbandoned, text, accept_error(Errc::kNoMemory)});
  };
  const auto of_channel = std::ranges::count_if(
      at_listener_.at(pending.connect.listener),
      [&](std::uint32_t comm) { return comms_.at(comm).channel == pending.channel; });
  if (static_cast<std::size_t>(of_channel) > limits.waiting_of_channel) {
    return full(std::to_string(limits.waiting_of_channel) + " connections of one process on " +
                pending.peer_host + " wait at this listener on " + host_name() +
                ", and it may have no more");
  }
  if (unaccepted >= limits.unaccepted) {
    return full(std::to_string(limits.unaccepted) + " connections wait for accept() on " +
                host_name() + ", and the listener takes no more");
  }
  return {};
}

void Acceptor::limit_waiting(std::uint32_t listener) {
  const std::size_t most = context_.options->limits.waiting;
  const std::set<std::uint32_t>& waiting = at_listener_.at(listener);
  if (waiting.size() <= most) return;
  refuse(*waiting.begin(),
         {wire::RejectCode::kAbandoned,
          "a listener on " + host_name() + " keeps no more than " + std::to_string(most) +
              " waiting connections, and as many newer ones have arrived",
          accept_error(Errc::kNoMemory)});
}

// A peer that has lost the channel before it got an answer sends its CONNECT again.
void Acceptor::forget_earlier(const Channel& channel, std::uint32_t peer_comm) {
  for (const std::uint32_t comm : comms_on(channel)) {
    if (comms_.at(comm).connect.comm == peer_comm) forget(comm);
  }
}

void Acceptor::advance(std::uint32_t comm) {
  PendingAccept& pending = comms_.at(comm);
  Channel* const channel = channel_of(pending);
  if (channel == nullptr) return;
  if (pending.state == AcceptState::kConnecting && pending.has_connected_directly()) {
    send_accept(comm, pending, *channel);
  }
  if (pending.is_peer_ready && pending.end->is_connected()) deliver(comm, *channel);
}

void Acceptor::send_accept(std::uint32_t comm, PendingAccept& pending, const Channel& channel) {
  pending.state = AcceptState::kAwaitReady;
  pending.accepted = pending.path_numbers();
  wire::Accept message{.comm = pending.connect.comm,
                       .our_comm = comm,
                       .window = pending.end->window(),
                       .missing = pending.missing_paths()};
  for (const auto& [number, path] : pending.end->paths()) {
    wire::PathAnswer& answer = message.paths.emplace_back(pending.answers.at(number));
    // The options that both devices have are known once the queue pair is connected.
    const std::optional<ibv_ece> agreed = path.agreed_ece();
    answer.qp.ece = agreed ? std::optional(to_wire(*agreed)) : std::nullopt;
  }
  channel.send(message);
}

void Acceptor::on_ready(const Channel& channel, const wire::Ready& ready) {
  PendingAccept* const pending = find(channel, ready.comm);
  if (pending == nullptr || pending->state != AcceptState::kAwaitReady) return;
  if (const Checked taken = take_ready(*pending, ready); !taken) {
    return fail_comm(ready.comm, taken.error());
  }
  pending->is_peer_ready = true;
  advance(ready.comm);
}

void Acceptor::deliver(std::uint32_t comm, Channel& channel) {
  const PendingAccept& pending = comms_.at(comm);
  const std::uint32_t listener = pending.connect.listener;
  MadeConnection made =
      make_linked(comm, pending.connect.comm, channel, Role::kReceive, pending.connect.window);
  forget(comm);
  lost_.erase(listener);
  // If the listener was closed in the meantime, the connection's destructor notifies the peer.
  const MadeConnection unwanted = context_.mailbox->deliver_accepted(listener, std::move(made));
}

bool Acceptor::on_reject(const Channel& channel, const wire::Reject& reject) {
  const PendingAccept* const pending = find(channel, reject.comm);
  if (pending == nullptr) return false;
  const std::uint32_t listener = pending->connect.listener;
  drop(reject.comm, pending->peer_host + " has given up: " + reject.text);
  context_.mailbox->fail_accept(listener, accept_error(Errc::kPeerClosed));
  return true;
}

void Acceptor::on_channel_end(const Channel& channel, const std::string& cause) {
  const std::int64_t patience = context_.options->connect_timeout.count() * kNsPerMs;
  for (const std::uint32_t comm : comms_on(channel)) {
    const std::uint32_t listener = comms_.at(comm).connect.listener;
    drop(comm, cause);
    lost_[listener] = comm;
    context_.poller->at(now_ns() + patience, [this, listener, comm] {
      const auto found = lost_.find(listener);
      if (found == lost_.end() || found->second != comm) return;
      lost_.erase(found);
      context_.mailbox->fail_accept(listener, accept_error(Errc::kPeerClosed));
    });
  }
}

void Acceptor::on_closed(const std::vector<std::uint32_t>& listeners) {
  for (const std::uint32_t listener : listeners) {
    lost_.erase(listener);
    const auto found = at_listener_.find(listener);
    if (found == at_listener_.end()) continue;
    const std::set<std::uint32_t> waiting = found->second;
    for (const std::uint32_t comm : waiting) abandon(comm);
  }
}

void Acceptor::abandon(std::uint32_t comm) {
  const PendingAccept& pending = comms_.at(comm);
  const Channel* const channel = channel_of(pending);
  if (channel != nullptr) {
    channel->send(wire::Reject{.comm = pending.connect.comm,
                               .code = wire::RejectCode::kAbandoned,
                               .text = "the listener on " + pending.own_name() +
                                       " was closed before the connection was made"});
  }
  BL_INFO(kLogNet, "accept on %s from %s is abandoned: the listener is closed",
          pending.own_name().c_str(), pending.peer.c_str());
  forget(comm);
}

void Acceptor::on_timeout(std::uint32_t comm) {
  const PendingAccept& pending = comms_.at(comm);
  const std::string limit = timeout_limit_text(*context_.options);
  const std::string text = pending.end->is_connected()
                               ? pending.peer + " did not send READY " + limit
                               : connecting_timeout_text(pending, limit);
  fail_comm(comm, {wire::RejectCode::kAbandoned, text, accept_error(Errc::kTimeout)});
}

void Acceptor::fail_comm(std::uint32_t comm, const HandshakeFailure& failure) {
  const std::uint32_t listener = comms_.at(comm).connect.listener;
  const Error error = failure.error;
  refuse(comm, failure);
  context_.mailbox->fail_accept(listener, error);
}

// The log comes first: the peer's process may end the job as soon as it gets the message.
void Acceptor::refuse(std::uint32_t comm, const HandshakeFailure& failure) {
  const PendingAccept& pending = comms_.at(comm);
  warn(pending, failure.text);
  const Channel* const channel = channel_of(pending);
  if (channel != nullptr) {
    channel->send(
        wire::Reject{.comm = pending.connect.comm, .code = failure.code, .text = failure.text});
  }
  forget(comm);
}

void Acceptor::drop(std::uint32_t comm, const std::string& why) {
  warn(comms_.at(comm), why);
  forget(comm);
}

void Acceptor::forget(std::uint32_t comm) {
  const auto found = comms_.find(comm);
  const auto others = at_listener_.find(found->second.connect.listener);
  others->second.erase(comm);
  if (others->second.empty()) at_listener_.erase(others);
  comms_.erase(found);
}

void Acceptor::warn(const PendingAccept& pending, const std::string& why) {
  // Rate-limited: a peer that holds a token can trigger this as often as it likes.
  const std::uint64_t number = failures_.due();
  if (number == 0) return;
  BL_WARN("accept on %s from %s failed (number %llu): %s", pending.own_name().c_str(),
          pending.peer.c_str(), static_cast<unsigned long long>(number), why.c_str());
}

}  // namespace beeline
