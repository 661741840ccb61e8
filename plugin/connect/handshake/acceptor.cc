// SPDX-License-Identifier: Apache-2.0
//
// The states of an accept.
#include "plugin/connect/handshake/acceptor.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "plugin/connect/path/wire_conversion.h"
#include "plugin/device/memlock.h"

namespace beeline {

void Acceptor::on_connect(Channel& channel, wire::Connect connect) {
  const std::uint32_t peer_comm = connect.comm;
  const auto invited = context_.mailbox->find_listener(connect.listener, connect.token);
  if (!invited) {
    channel.send(wire::Reject{.comm = peer_comm,
                              .code = wire::RejectCode::kNotInvited,
                              .text = "no such listener: it is closed"});
    return;
  }
  const std::uint32_t comm = context_.mailbox->next_comm();
  Admission& admission = admissions_[comm];
  admission.channel = channel.id();
  admission.peer_host = channel.peer().host;
  admission.device = invited->device;
  admission.qp = options_for(invited->settings, context_.options->qp);
  admission.connect = std::move(connect);
  admission.patience = Patience(*context_.poller, context_.options->connect_timeout);
  watch_patience(comm, admission.patience.left_ns(*context_.poller, 0));
  at_listener_[admission.connect.listener].insert(comm);
  if (const Checked checked = check_limits(admission, invited->unaccepted); !checked) {
    return refuse(comm, checked.error());
  }
  make_room(admission.connect.listener);
  if (const Checked checked = check(admission); !checked) return refuse(comm, checked.error());
  if (const Checked made = make(comm, admission); !made) return refuse(comm, made.error());
  if (admission.answer != nullptr) {
    answer(comm, admission);
  } else {
    this->connect(comm);
  }
}

Acceptor::Checked Acceptor::check(const Admission& admission) const {
  const Error error = beeline::fail(Errc::kUnsupported, "accept").error;
  if (admission.connect.paths.size() != 1) {
    return beeline::fail(Refusal{wire::RejectCode::kIncompatible,
                                 "one path can be made, and " +
                                     std::to_string(admission.connect.paths.size()) +
                                     " were offered",
                                 error});
  }
  if (admission.connect.window.length < context_.options->sender.window_bytes) {
    return beeline::fail(
        Refusal{wire::RejectCode::kIncompatible, "the offered window is too small", error});
  }
  return {};
}

Acceptor::Checked Acceptor::check_limits(const Admission& admission, std::size_t unaccepted) const {
  const PeerLimits& limits = context_.options->limits;
  const auto full = [](const std::string& text) {
    return beeline::fail(Refusal{wire::RejectCode::kAbandoned, text,
                                 beeline::fail(Errc::kNoMemory, "accept").error});
  };
  const auto its_own = std::ranges::count_if(
      at_listener_.at(admission.connect.listener),
      [&](std::uint32_t comm) { return admissions_.at(comm).channel == admission.channel; });
  if (static_cast<std::size_t>(its_own) > limits.waiting_of_channel) {
    return full(std::to_string(limits.waiting_of_channel) +
                " of its connections wait at this listener, and one process may have no more");
  }
  if (unaccepted >= limits.unaccepted) {
    return full(std::to_string(limits.unaccepted) +
                " connections that nobody has accepted wait at this listener, which takes no more");
  }
  return {};
}

void Acceptor::make_room(std::uint32_t listener) {
  const std::size_t most = context_.options->limits.waiting;
  const std::set<std::uint32_t>& waiting = at_listener_.at(listener);
  if (waiting.size() <= most) return;
  refuse(*waiting.begin(), {wire::RejectCode::kAbandoned,
                            "this listener keeps no more than " + std::to_string(most) +
                                " waiting connections, and as many newer ones have arrived",
                            beeline::fail(Errc::kNoMemory, "accept").error});
}

bool Acceptor::uses(const Channel& channel) const noexcept {
  return std::ranges::any_of(
      admissions_, [&](const auto& entry) { return entry.second.channel == channel.id(); });
}

// What our side wishes must be possible. What only the peer wishes is done where it is.
Result<Agreement, std::string> Acceptor::come_to_terms(const PortSide& ours,
                                                       const Admission& admission) {
  const wire::PathOffer& offer = admission.connect.paths[0];
  if (!wants_cm(ours, offer, admission.peer_host)) {
    return agree(ours, offer, admission.peer_host);
  }
  Agreement agreement = BL_TRY(agree_with_cm(ours, offer, admission.peer_host));
  if (const auto able = context_.cm->addresses(ours.device); !able) {
    if (needs_cm(ours)) return fail(able.error());
    BL_INFO(kLogNet, "%s wishes librdmacm, which is not used: %s", admission.peer_host.c_str(),
            able.error().c_str());
    return agree(ours, offer, admission.peer_host);
  }
  // Where to is known once there is an endpoint.
  agreement.answer.cm.emplace();
  return agreement;
}

Acceptor::Checked Acceptor::make(std::uint32_t comm, Admission& admission) {
  const ControlOptions& options = *context_.options;
  const auto failed = [](const Error& error) {
    return beeline::fail(
        Refusal{wire::RejectCode::kFailed, describe(error) + memlock_advice(error), error});
  };
  const Result<const PortFacts*> facts = context_.ports->facts(*admission.device);
  if (!facts) return failed(facts.error());
  const PortSide ours{*admission.device, **facts, admission.qp};
  Result<Agreement, std::string> agreement = come_to_terms(ours, admission);
  if (!agreement) {
    return beeline::fail(Refusal{wire::RejectCode::kIncompatible, agreement.error(),
                                 beeline::fail(Errc::kUnsupported, "accept").error});
  }
  admission.agreement = std::move(*agreement);
  Result<Endpoint> endpoint = Endpoint::create(*admission.device, options.receiver, admission.qp);
  if (!endpoint) return failed(endpoint.error());
  admission.endpoint = std::move(*endpoint);
  if (!admission.endpoint->ece()) admission.agreement.route.ece.reset();
  wire::QpFacts& qp = admission.agreement.answer.qp;
  qp = qp_facts(ours, *admission.endpoint);
  if (admission.agreement.answer.cm) return invite(comm, admission);
  return {};
}

Acceptor::Checked Acceptor::invite(std::uint32_t comm, Admission& admission) {
  const wire::PathOffer& theirs = admission.connect.paths[0];
  admission.answer = std::make_shared<CmAnswer>(
      *context_.cm, *admission.endpoint, context_.options->qp,
      admission.peer_host + " " + theirs.qp.device,
      [this, comm](const Result<void, std::string>& outcome) { on_cm_done(comm, outcome); });
  auto invitation = admission.answer->invite(theirs.cm.addresses);
  if (!invitation) {
    return beeline::fail(Refusal{wire::RejectCode::kFailed, invitation.error(),
                                 beeline::fail(Errc::kSystem, "accept").error});
  }
  admission.agreement.answer.cm = *invitation;
  return {};
}

void Acceptor::on_cm_done(std::uint32_t comm, const Result<void, std::string>& outcome) {
  Admission& admission = admissions_.at(comm);  // which has the call, and so is there
  if (!outcome) {
    return refuse(comm, {wire::RejectCode::kFailed, outcome.error(),
                         beeline::fail(Errc::kSystem, "accept").error});
  }
  admission.is_connected = true;
  // Cannot be missing: an admission ends with its channel.
  Channel* const channel = context_.channels->find(admission.channel);
  if (admission.is_ready && channel != nullptr) deliver(comm, *channel);
}

void Acceptor::connect(std::uint32_t comm) {
  const auto found = admissions_.find(comm);
  if (found == admissions_.end()) return;  // the other end was silent for too long
  Admission& admission = found->second;
  const Status connected = admission.endpoint->connect(admission.agreement.route, admission.qp);
  if (connected) {
    admission.is_connected = true;
    return answer(comm, admission);
  }
  if (connected.error().code == Errc::kTimeout) {
    context_.poller->at(now_ns() + Endpoint::kResolveAgainNs, [this, comm] { connect(comm); });
    return;
  }
  refuse(comm, {wire::RejectCode::kFailed, describe(connected.error()), connected.error()});
}

void Acceptor::answer(std::uint32_t comm, Admission& admission) {
  admission.state = State::kAwaitReady;
  // Cannot be missing: an admission ends with its channel.
  const Channel* const channel = context_.channels->find(admission.channel);
  if (channel == nullptr) return;
  wire::Accept message{
      .comm = admission.connect.comm, .our_comm = comm, .window = admission.endpoint->window()};
  // What is left of what both have shows only now.
  std::optional<wire::Ece>& ece = message.paths.emplace_back(admission.agreement.answer).qp.ece;
  ece.reset();
  const std::optional<ibv_ece> in_use = admission.endpoint->ece();
  if (admission.agreement.route.ece && in_use) ece = to_wire(*in_use);
  channel->send(message);
}

Acceptor::Admission* Acceptor::find(const Channel& channel, std::uint32_t comm) {
  const auto found = admissions_.find(comm);
  if (found == admissions_.end() || found->second.channel != channel.id()) return nullptr;
  return &found->second;
}

void Acceptor::on_ready(Channel& channel, const wire::Ready& ready) {
  Admission* const admission = find(channel, ready.comm);
  if (admission == nullptr || admission->state != State::kAwaitReady) return;
  admission->is_ready = true;
  if (admission->is_connected) deliver(ready.comm, channel);
}

void Acceptor::deliver(std::uint32_t comm, Channel& channel) {
  Admission* const admission = &admissions_.at(comm);
  const wire::Connect& theirs = admission->connect;
  const wire::PathOffer& path = theirs.paths[0];
  auto made = std::make_unique<Connection>(
      std::move(*admission->endpoint)
          .finish(Role::kReceive, theirs.window, admission->agreement.answer.notify, path.qp));
  made->link = channel.make_link(comm, theirs.comm, made->paths[0], context_.mailbox);
  BL_INFO(kLogNet, "accepted %s on %s, qp %u from %u", made->link->peer().text().c_str(),
          label(*admission->device).c_str(), made->paths[0].queues.qp->qp_num, path.qp.qpn);
  const std::uint32_t listener = theirs.listener;
  forget(comm);
  // Whom nobody wants any more tells the peer when it is destroyed.
  const MadeConnection unwanted = context_.mailbox->deliver_accepted(listener, std::move(made));
}

std::string Acceptor::lateness(const Admission& admission) {
  std::string text = "it was not ready in time";
  if (admission.answer == nullptr || admission.is_connected) return text;
  return text + " (" + admission.answer->overdue_text("") + ")";
}

bool Acceptor::on_reject(const Channel& channel, const wire::Reject& reject) {
  if (find(channel, reject.comm) == nullptr) return false;
  drop(reject.comm, "the peer gave up: " + reject.text);
  return true;
}

void Acceptor::on_channel_end(const Channel& channel, const std::string& cause) {
  std::vector<std::uint32_t> on_it;
  for (const auto& [comm, admission] : admissions_) {
    if (admission.channel == channel.id()) on_it.push_back(comm);
  }
  for (const std::uint32_t comm : on_it) drop(comm, cause);
}

void Acceptor::on_closed(const std::vector<std::uint32_t>& listeners) {
  for (const std::uint32_t listener : listeners) {
    const auto found = at_listener_.find(listener);
    if (found == at_listener_.end()) continue;
    const std::set<std::uint32_t> waiting = found->second;
    for (const std::uint32_t comm : waiting) abandon(comm);
  }
}

void Acceptor::abandon(std::uint32_t comm) {
  const Admission& admission = admissions_.at(comm);
  const Channel* const channel = context_.channels->find(admission.channel);
  if (channel != nullptr) {
    channel->send(wire::Reject{.comm = admission.connect.comm,
                               .code = wire::RejectCode::kAbandoned,
                               .text = "its listener was closed before the connection was made"});
  }
  BL_INFO(kLogNet, "accept on %s from %s is given up: the listener is closed",
          label(*admission.device).c_str(), admission.peer_host.c_str());
  forget(comm);
}

void Acceptor::watch_patience(std::uint32_t comm, std::int64_t left_ns) {
  context_.poller->at(now_ns() + left_ns, [this, comm] { on_silence(comm); });
}

void Acceptor::on_silence(std::uint32_t comm) {
  const auto found = admissions_.find(comm);
  if (found == admissions_.end()) return;
  const Channel* const channel = context_.channels->find(found->second.channel);
  const std::int64_t left = found->second.patience.left_ns(
      *context_.poller, channel == nullptr ? 0 : channel->progress_ns());
  if (left > 0) return watch_patience(comm, left);
  refuse(comm, {wire::RejectCode::kAbandoned, lateness(admissions_.at(comm)),
                beeline::fail(Errc::kTimeout, "accept").error});
}

// The log first: whoever hears of it may end the process.
void Acceptor::refuse(std::uint32_t comm, const Refusal& refusal) {
  const Admission& admission = admissions_.at(comm);
  warn(admission, refusal.text);
  const Channel* const channel = context_.channels->find(admission.channel);
  if (channel != nullptr) {
    channel->send(
        wire::Reject{.comm = admission.connect.comm, .code = refusal.code, .text = refusal.text});
  }
  if (refusal.code == wire::RejectCode::kFailed) {
    context_.mailbox->fail_accept(admission.connect.listener, refusal.error);
  }
  forget(comm);
}

void Acceptor::drop(std::uint32_t comm, const std::string& why) {
  warn(admissions_.at(comm), why);
  forget(comm);
}

void Acceptor::forget(std::uint32_t comm) {
  const auto found = admissions_.find(comm);
  const auto others = at_listener_.find(found->second.connect.listener);
  others->second.erase(comm);
  if (others->second.empty()) at_listener_.erase(others);
  admissions_.erase(found);
}

void Acceptor::warn(const Admission& admission, const std::string& why) {
  const wire::QpFacts& peer = admission.connect.paths.front().qp;
  // One who is invited can make it happen as often as it likes.
  const std::uint64_t number = failures_.due();
  if (number == 0) return;
  BL_WARN("accept on %s %s from %s %s port %u failed (number %llu): %s", host_name().c_str(),
          label(*admission.device).c_str(), admission.peer_host.c_str(), peer.device.c_str(),
          unsigned{peer.port}, static_cast<unsigned long long>(number), why.c_str());
}

}  // namespace beeline
