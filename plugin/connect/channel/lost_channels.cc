// SPDX-License-Identifier: Apache-2.0
//
// Channels whose connection is lost. Both ends dial again. The comms go on meanwhile; only the
// death of the peer ends them, and what shows that is in the comments below.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "common/check/assert.h"
#include "plugin/connect/channel/channels.h"
#include "plugin/connect/socket/fork_guard.h"
#include "plugin/connect/socket/socket.h"

namespace beeline {
namespace {

std::string lost_text(std::int64_t since_ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", static_cast<double>(now_ns() - since_ns) / 1e9);
  return text;
}

}  // namespace

bool Channels::is_worth_resuming(const Channel& channel) const {
  if (channel.resume() == nullptr || channel.is_closing()) return false;
  return channel.links().needs_channel() || events_->has_handshake_on(channel);
}

void Channels::lose(Channel& channel, const std::string& cause, std::int64_t silent_ns) {
  const std::uint64_t id = channel.id();
  const std::int64_t now = now_ns();
  backlog_.erase(id);
  losses_[id] = {.cause = cause, .since_ns = now - silent_ns};
  losses_[id].silence.begin(now, silent_ns, channel.links().progress());
  channel.lose();
  events_->on_channel_lost(channel, cause);
  redialer_.start(channel);
}

// Logged when the first dial has not shown that the peer is dead: many programs end without closing
// their comms.
void Channels::log_loss(Channel& channel, Loss& loss) {
  if (std::exchange(loss.is_logged, true)) return;
  BL_WARN("%s has lost the control channel with %s, and dials again; connections go on: %s",
          host_name().c_str(), channel.peer().text().c_str(), loss.cause.c_str());
}

bool Channels::is_redialing(const wire::ProcessId& process) const {
  return std::ranges::any_of(channels_, [&](const auto& entry) {
    return entry.second->peer().id == process && entry.second->is_lost();
  });
}

void Channels::on_link_gone(const GoneLink& link) {
  Channel* const channel = find(link.numbers.channel);
  if (channel == nullptr) return;
  channel->on_link_gone(link);
  if (channel->is_lost() && !is_worth_resuming(*channel)) {
    end(channel->id(), "it was lost, and no connection needs it any more");
  }
}

// --- Dialed by the peer ---

Channel* Channels::find_by_token(const wire::ProcessId& process, const wire::Token& token) const {
  for (const auto& [id, channel] : channels_) {
    const ResumeTerms* const terms = channel->resume();
    if (terms == nullptr || channel->is_closing() || channel->peer().id != process) continue;
    if (wire::is_same_secret(terms->own_token, token)) return channel.get();
  }
  return nullptr;
}

// Nothing changes here until the token has shown that the peer is who it says: a stranger cannot
// disturb a channel. A peer that dials has lost the channel, even if this end has not noticed it.
Result<wire::ResumeAck, wire::Refuse> Channels::check_resume(const wire::Resume& resume) {
  Channel* const channel = find_by_token(resume.process, resume.token);
  if (channel == nullptr) {
    return fail(wire::Refuse{.code = wire::RefuseCode::kUnknownChannel,
                             .text = "no such control channel on " + host_name()});
  }
  if (resume.attempt <= channel->peers_last_attempt()) {
    return fail(wire::Refuse{.code = wire::RefuseCode::kDuplicate,
                             .text = "a later dial has overtaken this one"});
  }
  // Of two dials, that of the smaller process goes first once it has introduced itself.
  if (self_->id < resume.process && redialer_.has_introduced(channel->id())) {
    return fail(wire::Refuse{.code = wire::RefuseCode::kDuplicate,
                             .text = "the dial in the other direction goes first"});
  }
  return wire::ResumeAck{.process = self_->id,
                         .token = channel->resume()->theirs.token,
                         .attempt = channel->last_attempt()};
}

void Channels::resume(const wire::Resume& resume, NewStream stream) {
  Channel& channel = *find_by_token(resume.process, resume.token);
  channel.note_peers_attempt(resume.attempt);
  redialer_.cancel(channel.id());
  if (!channel.is_lost()) {
    const std::string cause = "it has lost the connection, and dialed again";
    backlog_.erase(channel.id());
    losses_[channel.id()] = {.cause = cause, .since_ns = now_ns()};
    channel.lose();
    events_->on_channel_lost(channel, cause);
  }
  go_on(channel, std::move(stream));
}

// --- Dialed by this process ---

void Channels::on_redialed(std::uint64_t id, NewStream stream, std::uint32_t attempt) {
  Channel& channel = *find(id);
  channel.note_peers_attempt(attempt);
  go_on(channel, std::move(stream));
}

void Channels::on_peer_dead(std::uint64_t id, const std::string& why) {
  log_absence(id, why);
  end(id, kProcessEnded);
}

void Channels::on_refused(std::uint64_t id, const std::string& why) {
  log_absence(id, why);
  end(id,
      "the control channel was lost (" + losses_.at(id).cause + ") and cannot be resumed: " + why);
}

// Only if the loss was logged.
void Channels::log_absence(std::uint64_t id, const std::string& why) {
  const Loss& loss = losses_.at(id);
  if (!loss.is_logged) return;
  BL_WARN("the control channel with %s is not back after %s: %s", find(id)->peer().text().c_str(),
          lost_text(loss.since_ns).c_str(), why.c_str());
}

void Channels::on_peer_alive(std::uint64_t id) { losses_.at(id).silence.heard(now_ns()); }

PeerSilence::Limits Channels::silence_limits() const noexcept {
  return {.peer_ns = std::chrono::nanoseconds(timeouts_.peer).count(),
          .outage_ns = std::chrono::nanoseconds(timeouts_.outage).count()};
}

PeerSilence::Facts Channels::facts_about(const Channel& channel) const {
  PeerSilence::Facts facts = {.are_own_ports_down = events_->are_ports_down(channel)};
  const std::string& host = channel.peer().host;
  if (host == self_->host) return facts;  // it cannot be cut off from this one
  for (const auto& [id, other] : channels_) {
    if (other->peer().host == host || other->peer().host == self_->host) continue;
    facts.has_other_hosts = true;
    facts.hears_others |= !other->is_lost() || losses_.at(id).silence.is_short(silence_limits());
  }
  return facts;
}

// The network of the channel may be interrupted while the peer is well. As long as anything comes
// by a path from the peer, it is not dead; connections without work ask for that.
void Channels::on_no_answer(std::uint64_t id, const std::string& last_error) {
  Channel& channel = *find(id);
  Loss& loss = losses_.at(id);
  log_loss(channel, loss);
  const PeerSilence::Facts facts = facts_about(channel);
  const PeerSilence::Verdict verdict =
      loss.silence.look(now_ns(), channel.links().progress(), silence_limits(), facts);
  for (const auto& link : channel.links().all()) link->ask_peer();
  if (verdict == PeerSilence::Verdict::kWait) return;
  const std::string because = facts.are_own_ports_down
                                  ? "the ports of this host are down"
                                  : "no process on another host answers either";
  switch (verdict) {
    case PeerSilence::Verdict::kWait: return;
    case PeerSilence::Verdict::kWaitForNetwork:
      if (std::exchange(loss.is_outage_logged, true)) return;
      BL_WARN(
          "%s has heard nothing from %s for %s, and waits %s for the network: %s",
          host_name().c_str(), channel.peer().text().c_str(), seconds_text(timeouts_.peer).c_str(),
          timeouts_.outage.count() == 0
              ? "without a limit"
              : ("up to " + seconds_text(timeouts_.outage) + " (BEELINE_GIVE_UP_AFTER)").c_str(),
          because.c_str());
      return;
    case PeerSilence::Verdict::kOutageTooLong:
      return end(id, "nothing was heard from it for " + seconds_text(timeouts_.outage) +
                         " (BEELINE_GIVE_UP_AFTER), and " + because);
    case PeerSilence::Verdict::kDead:
      return end(id, "no answer for " + seconds_text(timeouts_.peer) + " on the control channel (" +
                         last_error +
                         "), and no data has moved (BEELINE_PEER_TIMEOUT); it was lost because " +
                         loss.cause);
  }
}

// --- Both ---

void Channels::go_on(Channel& channel, NewStream stream) {
  const std::uint64_t id = channel.id();
  const int fd = stream.fd.get();
  const Status set = set_channel_options(fd, stream_timeout(true));
  const Result<Poller::Key> key = set ? watch(fd, id) : fail(set.error());
  if (!key) {
    BL_WARN("control channel to %s: %s", channel.peer().text().c_str(),
            describe(key.error()).c_str());
    return redialer_.start(channel);
  }
  guard_from_fork(fd);
  const auto loss = losses_.find(id);
  BL_ASSERT(loss != losses_.end(), "each lost channel has its loss");
  log_loss(channel, loss->second);
  BL_WARN("the control channel with %s is back after %s", channel.peer().text().c_str(),
          lost_text(loss->second.since_ns).c_str());
  losses_.erase(loss);
  channel.go_on(std::move(stream), *key);
  events_->on_channel_back(channel);
  read(id);
}

}  // namespace beeline
