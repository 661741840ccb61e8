// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/channel/channels.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "common/check/assert.h"
#include "plugin/connect/socket/address.h"
#include "plugin/connect/socket/socket.h"

namespace beeline {
namespace {

// The kernel repeats a lost SYN after a second.
constexpr std::int64_t kConnectNs = 1500 * kNsPerMs;
// The peer's control thread may be busy with the queue pairs of other comms.
constexpr std::int64_t kAnswerNs = 2 * kNsPerSec;
constexpr std::int64_t kFirstRedialPauseNs = 10 * kNsPerMs;
constexpr std::int64_t kLongestRedialPauseNs = kNsPerSec;

}  // namespace

Redialer::~Redialer() {
  for (auto& [channel, redial] : redials_) {
    for (Try& one : redial.tries) hang_up(one);
  }
}

void Redialer::start(Channel& channel) {
  BL_ASSERT(channel.resume() != nullptr, "both ends have agreed how the channel is resumed");
  redials_[channel.id()].channel = &channel;
  begin_round(channel.id());
}

void Redialer::cancel(std::uint64_t channel) {
  const auto found = redials_.find(channel);
  if (found == redials_.end()) return;
  for (Try& one : found->second.tries) hang_up(one);
  redials_.erase(found);
}

bool Redialer::has_introduced(std::uint64_t channel) const {
  const auto found = redials_.find(channel);
  return found != redials_.end() && std::ranges::any_of(found->second.tries, [](const Try& one) {
           return one.state == State::kIntroduced;
         });
}

void Redialer::hang_up(Try& one) noexcept {
  one.state = State::kOver;
  if (!one.fd) return;
  poller_->remove(one.fd.get(), one.key);
  one.fd.reset();
}

void Redialer::schedule(const Redial& redial, std::int64_t ns, State state) {
  poller_->at(now_ns() + ns, [this, channel = redial.channel->id(), round = redial.round, state] {
    time_out(channel, round, state);
  });
}

void Redialer::begin_round(std::uint64_t channel) {
  Redial& redial = redials_.at(channel);
  redial.round = ++last_round_;
  redial.tries.clear();
  redial.is_refused = false;
  redial.has_connected = false;
  redial.has_answered = false;
  const std::vector<wire::SocketAddress>& addresses = redial.channel->resume()->theirs.addresses;
  redial.tries.resize(addresses.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    Try& one = redial.tries[i];
    one.address = addresses[i];
    Result<UniqueFd> fd = start_dial(one.address);
    const auto key = fd ? poller_->add(fd->get(), EPOLLOUT,
                                       [this, channel, round = redial.round, i](std::uint32_t) {
                                         on_event(channel, round, i);
                                       })
                        : fail(fd.error());
    if (!key) {
      redial.last_error = text(one.address) + ": " + describe(key.error()) + fd_advice(key.error());
      redial.is_refused = redial.is_refused || key.error().sys_errno == ECONNREFUSED;
      continue;
    }
    one.state = State::kConnecting;
    one.fd = std::move(*fd);
    one.key = *key;
  }
  schedule(redial, kConnectNs, State::kConnecting);
  end_round_if_over(channel);
}

void Redialer::on_event(std::uint64_t channel, std::uint64_t round, std::size_t index) {
  const auto found = redials_.find(channel);
  if (found == redials_.end() || found->second.round != round) return;
  Redial& redial = found->second;
  switch (redial.tries[index].state) {
    case State::kConnecting: on_connected(redial, index); break;
    case State::kIntroduced:
      if (!on_answer(redial, index)) return;
      break;
    case State::kOver: return;
  }
  end_round_if_over(channel);
}

void Redialer::on_connected(Redial& redial, std::size_t index) {
  Try& one = redial.tries[index];
  const Status outcome = dial_outcome(one.fd.get());
  if (!outcome) {
    redial.is_refused = redial.is_refused || outcome.error().sys_errno == ECONNREFUSED;
    return fail_try(redial, one, describe(outcome.error()));
  }
  redial.has_connected = true;
  if (has_introduced(redial.channel->id())) return hang_up(one);
  const wire::Resume resume{.process = self_->id,
                            .token = redial.channel->resume()->theirs.token,
                            .attempt = redial.channel->next_attempt()};
  // The send buffer of a new socket has room for all of it.
  const Result<std::size_t> sent = send_some(one.fd.get(), wire::encode(resume));
  if (!sent) return fail_try(redial, one, describe(sent.error()));
  one.state = State::kIntroduced;
  poller_->want(one.fd.get(), one.key, EPOLLIN);
  schedule(redial, kAnswerNs, State::kIntroduced);
}

bool Redialer::on_answer(Redial& redial, std::size_t index) {
  Try& one = redial.tries[index];
  std::array<std::byte, 4096> buffer;
  const Result<std::size_t> got = receive_some(one.fd.get(), buffer);
  // A process that is ending may close its listening socket last.
  if (!got) return fail_try(redial, one, "it hung up: " + describe(got.error())), true;
  one.input.append(wire::ByteView(buffer).first(*got));
  const Result<std::optional<wire::Frame>> frame = one.input.next();
  if (frame && !*frame) return true;
  if (frame && (*frame)->type == wire::MessageType::kResumeAck) {
    const auto ack = wire::decode<wire::ResumeAck>((*frame)->body);
    if (ack) return on_ack(redial, one, *ack), false;
  }
  if (frame && (*frame)->type == wire::MessageType::kRefuse) {
    const auto refusal = wire::decode<wire::Refuse>((*frame)->body);
    if (refusal) return on_refuse(redial, one, *refusal);
  }
  give_up(redial, one, "another program answers");
  return false;
}

bool Redialer::on_refuse(Redial& redial, Try& one, const wire::Refuse& refusal) {
  if (refusal.code != wire::RefuseCode::kDuplicate) {
    give_up(redial, one, "the process that answers says: " + refusal.text);
    return false;
  }
  redial.has_answered = true;
  fail_try(redial, one, "it says: " + refusal.text);
  return true;
}

void Redialer::on_ack(Redial& redial, Try& one, const wire::ResumeAck& ack) {
  const Channel& channel = *redial.channel;
  if (ack.process != channel.peer().id ||
      !wire::is_same_secret(ack.token, channel.resume()->own_token)) {
    return give_up(redial, one, "another process answers");
  }
  poller_->remove(one.fd.get(), one.key);
  NewStream stream{.fd = std::move(one.fd), .input = std::move(one.input)};
  const std::uint64_t id = channel.id();
  cancel(id);
  channels_->on_redialed(id, std::move(stream), ack.attempt);
}

void Redialer::give_up(Redial& redial, const Try& one, const std::string& why) {
  const std::string text = beeline::text(one.address) + ": " + why;
  const std::uint64_t id = redial.channel->id();
  cancel(id);
  channels_->on_refused(id, text);
}

void Redialer::fail_try(Redial& redial, Try& one, const std::string& why) {
  redial.last_error = text(one.address) + ": " + why;
  hang_up(one);
}

void Redialer::time_out(std::uint64_t channel, std::uint64_t round, State state) {
  const auto found = redials_.find(channel);
  if (found == redials_.end() || found->second.round != round) return;
  for (Try& one : found->second.tries) {
    if (one.state == state) fail_try(found->second, one, "no answer");
  }
  end_round_if_over(channel);
}

// Where nothing listens, the process has ended. An address that does not answer at all may belong
// to a network that is interrupted, so it says nothing.
void Redialer::end_round_if_over(std::uint64_t channel) {
  const auto found = redials_.find(channel);
  if (found == redials_.end()) return;
  Redial& redial = found->second;
  const auto is_over = [](const Try& one) { return one.state == State::kOver; };
  if (!std::ranges::all_of(redial.tries, is_over)) return;
  if (redial.is_refused && !redial.has_connected) {
    const std::string why = redial.last_error;
    cancel(channel);
    return channels_->on_peer_dead(channel, why);
  }
  redial.pause_ns = std::clamp(2 * redial.pause_ns, kFirstRedialPauseNs, kLongestRedialPauseNs);
  const std::uint64_t round = redial.round;
  poller_->at(now_ns() + redial.pause_ns, [this, channel, round] {
    const auto again = redials_.find(channel);
    if (again != redials_.end() && again->second.round == round) begin_round(channel);
  });
  if (redial.has_answered) return channels_->on_peer_alive(channel);
  const std::string last_error = redial.last_error;
  channels_->on_no_answer(channel, last_error);
}

}  // namespace beeline
