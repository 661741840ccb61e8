// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/channel/dialer.h"

#include <algorithm>
#include <array>

#include "common/base/clock.h"
#include "plugin/connect/socket/address.h"
#include "plugin/connect/socket/socket.h"

namespace beeline {
namespace {

// The listener existed, since this process has its handle. So a refused connection means that its
// host is flooded, which passes soon, or that its process has ended, which does not.
constexpr std::int64_t kRedialForNs = 3 * kNsPerSec;
constexpr std::int64_t kFirstPauseNs = 20 * kNsPerMs;
constexpr std::int64_t kLongestPauseNs = 500 * kNsPerMs;
// The wait for the peer's own dial, which has precedence.
constexpr std::int64_t kDuplicatePauseNs = 300 * kNsPerMs;

// The peer has read its clock between the two times. It is as likely to have done so at any time
// between them. The values are the peer's, and may be any.
ClockOffset clock_offset(std::int64_t asked_ns, std::uint64_t peers_ns, std::int64_t answered_ns) {
  const std::int64_t half = (answered_ns - asked_ns + 1) / 2;
  const std::uint64_t ahead = peers_ns - static_cast<std::uint64_t>(asked_ns + half);
  return {.ahead_ns = static_cast<std::int64_t>(ahead),
          .error_ns = std::max<std::int64_t>(half, 1)};
}

}  // namespace

Dialer::~Dialer() {
  for (auto& [process, dial] : dials_) hang_up(dial);
}

void Dialer::dial(const wire::ProcessId& process) {
  const auto [dial, is_new] = dials_.try_emplace(process);
  if (is_new) try_dial(dial);
}

bool Dialer::has_introduced(const wire::ProcessId& process) const {
  const auto found = dials_.find(process);
  return found != dials_.end() && found->second.state == State::kIntroduced;
}

std::string Dialer::last_error(const wire::ProcessId& process) const {
  const auto found = dials_.find(process);
  if (found == dials_.end()) return {};
  const Dial& dial = found->second;
  const std::string where = text(dial.target.handle.address);
  return where + ": " + (dial.last_error.empty() ? "no answer" : dial.last_error);
}

void Dialer::cancel(const wire::ProcessId& process) {
  const auto found = dials_.find(process);
  if (found == dials_.end()) return;
  hang_up(found->second);
  dials_.erase(found);
}

void Dialer::hang_up(Dial& dial) noexcept {
  if (!dial.fd) return;
  poller_->remove(dial.fd.get(), dial.key);
  dial.fd.reset();
}

void Dialer::schedule(const Dials::iterator& dial, std::int64_t ns,
                      void (Dialer::*call)(Dials::iterator)) {
  poller_->at(now_ns() + ns, [this, process = dial->first, number = dial->second.number, call] {
    const auto found = dials_.find(process);
    if (found != dials_.end() && found->second.number == number) (this->*call)(found);
  });
}

void Dialer::try_dial(Dials::iterator it) {
  Dial& dial = it->second;
  std::optional<DialTarget> target = events_->find_dial_target(it->first);
  if (!target) return cancel(wire::ProcessId(it->first));
  dial.target = std::move(*target);
  dial.input = {};
  dial.number = ++last_number_;
  Result<UniqueFd> fd = start_dial(dial.target.handle.address);
  if (!fd) return on_failure(it, fd.error());
  const auto key = poller_->add(fd->get(), EPOLLOUT,
                                [this, process = it->first, number = dial.number](std::uint32_t) {
                                  on_event(process, number);
                                });
  if (!key) return on_failure(it, key.error());
  dial.fd = std::move(*fd);
  dial.key = *key;
  dial.state = State::kConnecting;
}

void Dialer::on_event(const wire::ProcessId& process, std::uint64_t number) {
  const auto dial = dials_.find(process);
  if (dial == dials_.end() || dial->second.number != number) return;
  switch (dial->second.state) {
    case State::kConnecting: return on_connected(dial);
    case State::kIntroduced: return on_answer(dial);
    case State::kPaused: return;
  }
}

void Dialer::on_connected(Dials::iterator it) {
  Dial& dial = it->second;
  const Status outcome = dial_outcome(dial.fd.get());
  if (!outcome) return on_failure(it, outcome.error());
  dial.offer = events_->make_resume_offer();
  const wire::Hello hello{.process = self_->id,
                          .host = self_->host,
                          .pid = self_->pid,
                          .listener = dial.target.handle.listener,
                          .token = dial.target.handle.token,
                          .resume = dial.offer};
  dial.hello_ns = now_ns();
  // The send buffer of a new socket has room for all of it.
  const Result<std::size_t> sent = send_some(dial.fd.get(), wire::encode(hello));
  if (!sent) return on_failure(it, sent.error());
  dial.state = State::kIntroduced;
  poller_->want(dial.fd.get(), dial.key, EPOLLIN);
  schedule(it, answer_timeout_.count() * kNsPerMs, &Dialer::on_timeout);
}

void Dialer::on_timeout(Dials::iterator it) {
  if (it->second.state != State::kIntroduced) return;
  on_failure(it, fail(Errc::kTimeout, "wait for an answer to HELLO").error);
}

Result<std::optional<wire::Frame>> Dialer::read_answer(Dial& dial) {
  std::array<std::byte, 4096> buffer;
  const std::size_t got = BL_TRY(receive_some(dial.fd.get(), buffer));
  dial.input.append(wire::ByteView(buffer).first(got));
  return dial.input.next();
}

void Dialer::on_answer(Dials::iterator it) {
  const Result<std::optional<wire::Frame>> frame = read_answer(it->second);
  if (!frame) return on_failure(it, frame.error());
  if (!*frame) return;
  if ((*frame)->type == wire::MessageType::kHelloAck) {
    const auto ack = wire::decode<wire::HelloAck>((*frame)->body);
    return ack ? on_hello_ack(it, *ack) : give_up(it, ack.error(), describe(ack.error()));
  }
  if ((*frame)->type == wire::MessageType::kRefuse) {
    const auto refusal = wire::decode<wire::Refuse>((*frame)->body);
    return refusal ? on_refuse(it, *refusal)
                   : give_up(it, refusal.error(), describe(refusal.error()));
  }
  const Error error = fail(Errc::kProtocol, "wait for an answer to HELLO").error;
  give_up(it, error, "it answered HELLO with " + std::string(to_string((*frame)->type)));
}

void Dialer::on_hello_ack(Dials::iterator it, const wire::HelloAck& ack) {
  Dial& dial = it->second;
  if (ack.process != it->first) {
    const Error error = fail(Errc::kProtocol, "compare who answered").error;
    return give_up(
        it, error,
        "another process answers there: " + ack.host + " (pid " + std::to_string(ack.pid) + ")");
  }
  Introduced introduced{.fd = {},
                        .peer = {.id = ack.process, .host = ack.host, .pid = ack.pid},
                        .direction = Direction::kDialed,
                        .resume = resume_terms(dial.offer, ack.resume),
                        .clock = clock_offset(dial.hello_ns, ack.clock_ns, now_ns()),
                        .input = std::move(dial.input)};
  poller_->remove(dial.fd.get(), dial.key);
  introduced.fd = std::move(dial.fd);
  dials_.erase(it);
  events_->on_introduced(std::move(introduced));
}

void Dialer::on_refuse(Dials::iterator it, const wire::Refuse& refusal) {
  switch (refusal.code) {
    case wire::RefuseCode::kVersion:
      return give_up(it, fail(Errc::kUnsupported, "agree on a version").error,
                     wire::version_mismatch(refusal.versions, wire::kOurVersions));
    case wire::RefuseCode::kUnknownListener: {
      const std::uint32_t comm = it->second.target.comm;
      hang_up(it->second);
      pause(it, 0);  // another connect may wait, for a listener that exists
      return events_->on_unknown_listener(comm, refusal.text);
    }
    case wire::RefuseCode::kDuplicate:
      hang_up(it->second);
      it->second.last_error = "it says: " + refusal.text;
      it->second.first_failure_ns = 0;  // the process is there
      return pause(it, kDuplicatePauseNs);
    case wire::RefuseCode::kUnknownChannel: break;
  }
  give_up(it, fail(Errc::kProtocol, "wait for an answer to HELLO").error,
          "it answered HELLO as if it were RESUME");
}

void Dialer::on_failure(Dials::iterator it, const Error& error) {
  Dial& dial = it->second;
  hang_up(dial);
  dial.last_error = describe(error) + fd_advice(error);
  const std::int64_t now = now_ns();
  if (dial.first_failure_ns == 0) dial.first_failure_ns = now;
  // A peer that does not answer may be stopped, and continue later. The connects' own timeouts
  // limit the wait for it.
  const bool may_pass = error.code == Errc::kTimeout || now - dial.first_failure_ns < kRedialForNs;
  if (error.code == Errc::kProtocol || !may_pass) return give_up(it, error, dial.last_error);
  dial.pause_ns = std::clamp(2 * dial.pause_ns, kFirstPauseNs, kLongestPauseNs);
  pause(it, dial.pause_ns);
}

void Dialer::pause(Dials::iterator it, std::int64_t ns) {
  it->second.state = State::kPaused;
  schedule(it, ns, &Dialer::try_dial);
}

// The arguments are copies, because the originals may be members of the dial, which ends here.
void Dialer::give_up(Dials::iterator it, Error error, std::string text) {
  const wire::ProcessId process = it->first;
  const std::string where = beeline::text(it->second.target.handle.address);
  cancel(process);
  events_->on_unreachable(process, error, std::move(text).insert(0, where + ": "));
}

}  // namespace beeline
