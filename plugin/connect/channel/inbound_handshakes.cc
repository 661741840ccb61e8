// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/channel/inbound_handshakes.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/base/clock.h"
#include "plugin/connect/socket/fork_guard.h"
#include "plugin/connect/socket/socket.h"

namespace beeline {
namespace {

// Limits on the number of handshakes. For one more, the oldest is dropped.
constexpr std::size_t kMostInbound = 256;
constexpr std::size_t kFewestInbound = 4;
constexpr std::size_t kAcceptsPerTurn = 32;  // then messages are read
constexpr std::int64_t kAcceptPauseNs = 100 * kNsPerMs;

// Unknown peers get an eighth of the descriptors, which are the application's.
std::size_t most_inbound() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMostInbound;
  return std::clamp<std::size_t>(limit.rlim_cur / 8, kFewestInbound, kMostInbound);
}

bool is_out_of_descriptors(const Error& error) noexcept {
  return error.sys_errno == EMFILE || error.sys_errno == ENFILE;
}

}  // namespace

InboundHandshakes::~InboundHandshakes() {
  for (const auto& one : listening_) {
    poller_->remove(one->fd.get(), one->key);
    unguard_from_fork(one->fd.get());
  }
  for (auto& [id, handshake] : handshakes_) poller_->remove(handshake.fd.get(), handshake.key);
}

Status InboundHandshakes::listen_on(UniqueFd listening) {
  const wire::SocketAddress address = BL_TRY(local_address(listening.get()));
  auto one = std::make_unique<Listening>(Listening{.fd = std::move(listening), .address = address});
  one->key = BL_TRY(poller_->add(one->fd.get(), EPOLLIN, [this, added = one.get()](std::uint32_t) {
    accept_waiting(*added);
  }));
  guard_from_fork(one->fd.get());
  if (handshakes_.empty()) limit_ = most_inbound();
  listening_.push_back(std::move(one));
  return {};
}

std::vector<wire::SocketAddress> InboundHandshakes::addresses() const {
  std::vector<wire::SocketAddress> addresses;
  for (const auto& one : listening_) addresses.push_back(one->address);
  return addresses;
}

// Accepts no more than the limit leaves room for, so that a peer whose HELLO has already arrived is
// read before it could be dropped for a newer one.
void InboundHandshakes::accept_waiting(const Listening& listening) {
  const std::size_t room = limit_ - std::min(limit_, handshakes_.size());
  const std::size_t turns = std::clamp<std::size_t>(room, 1, kAcceptsPerTurn);
  for (std::size_t i = 0; i < turns; ++i) {
    Result<std::optional<UniqueFd>> accepted = accept_one(listening.fd.get());
    if (!accepted) return on_accept_failure(listening, accepted.error());
    if (!*accepted) return;
    add(std::move(**accepted));
  }
}

// The connection that was not accepted stays in the kernel's queue. If descriptors have run out,
// half of the handshakes are dropped, and the limit is lowered until none is left. If there are
// only a few handshakes, an unused channel is closed instead: otherwise the one descriptor that
// becomes free would go to the next peer, which would then be dropped for the one after it.
void InboundHandshakes::on_accept_failure(const Listening& listening, const Error& error) {
  const bool is_out = is_out_of_descriptors(error);
  if (is_out && handshakes_.size() <= kFewestInbound &&
      channels_->drop_unused("this process has no descriptors left")) {
    return;
  }
  if (is_out && !handshakes_.empty()) {
    const std::size_t left = handshakes_.size() / 2;
    limit_ = std::max(left, kFewestInbound);
    while (handshakes_.size() > left) drop(handshakes_.begin()->first, describe(error));
    return;
  }
  BL_WARN_LIMITED(3, "%s", (describe(error) + fd_advice(error)).c_str());
  const int fd = listening.fd.get();
  const Poller::Key key = listening.key;
  poller_->want(fd, key, 0);
  poller_->at(now_ns() + kAcceptPauseNs, [this, fd, key] { poller_->want(fd, key, EPOLLIN); });
}

void InboundHandshakes::add(UniqueFd fd) {
  if (handshakes_.size() >= limit_) drop(handshakes_.begin()->first, "too many others wait");
  const std::uint64_t id = ++last_id_;
  const auto key = poller_->add(fd.get(), EPOLLIN, [this, id](std::uint32_t) { on_event(id); });
  if (!key) {
    BL_WARN_LIMITED(3, "a control connection from %s is dropped: %s", remote_text(fd.get()).c_str(),
                    describe(key.error()).c_str());
    return;
  }
  handshakes_.emplace(id, InboundHandshake{.fd = std::move(fd),
                                           .key = *key,
                                           .deadline_ns = now_ns() + timeout_.count() * kNsPerMs,
                                           .input = {}});
  schedule_timeout();
}

// One timer serves all, because they have the same timeout, and the oldest is first.
void InboundHandshakes::schedule_timeout() {
  if (is_timer_set_ || handshakes_.empty()) return;
  is_timer_set_ = true;
  poller_->at(handshakes_.begin()->second.deadline_ns, [this] {
    is_timer_set_ = false;
    const std::int64_t now = now_ns();
    while (!handshakes_.empty() && handshakes_.begin()->second.deadline_ns <= now) {
      drop(handshakes_.begin()->first, "it did not introduce itself in time");
    }
    schedule_timeout();
  });
}

void InboundHandshakes::on_event(std::uint64_t id) {
  const auto found = handshakes_.find(id);
  if (found == handshakes_.end()) return;
  const Outcome<std::optional<Introduction>> introduction = read_introduction(found->second);
  if (!introduction && !found->second.has_received) {
    if (const std::uint64_t number = silent_.due(); number != 0) {
      BL_INFO(
          kLogNet,
          "a control connection from %s was closed before its first message (number %llu); this is "
          "normal after a port scan, or when two processes connect to each other",
          remote_text(found->second.fd.get()).c_str(), static_cast<unsigned long long>(number));
    }
    return close(id);
  }
  if (!introduction) return drop(id, introduction.error().text);
  if (!*introduction) return;
  if (const auto* const hello = std::get_if<wire::Hello>(&**introduction)) {
    on_hello(id, *hello);
  } else {
    on_resume(id, std::get<wire::Resume>(**introduction));
  }
}

Outcome<std::optional<InboundHandshakes::Introduction>> InboundHandshakes::read_introduction(
    InboundHandshake& handshake) {
  std::array<std::byte, wire::kFrameHeadBytes + wire::kMaxHelloBytes> buffer;
  const Result<std::size_t> got = receive_some(handshake.fd.get(), buffer);
  if (!got) return fail(Problem("the connection ended before HELLO: " + describe(got.error())));
  handshake.has_received = handshake.has_received || *got > 0;
  handshake.input.append(wire::ByteView(buffer).first(*got));
  const Result<std::optional<wire::Frame>> frame = handshake.input.next(wire::kMaxHelloBytes);
  if (!frame) return fail(Problem(frame.error()));
  if (!*frame) return std::optional<Introduction>{};
  const wire::MessageType type = (*frame)->type;
  const wire::Bytes& body = (*frame)->body;
  if (type != wire::MessageType::kHello && type != wire::MessageType::kResume) {
    return fail(Problem("its first message is " + std::string(to_string(type))));
  }
  BL_TRY(check_versions(handshake.fd.get(), body));
  if (type == wire::MessageType::kResume) {
    const Result<wire::Resume> resume = wire::decode<wire::Resume>(body);
    if (!resume) return fail(Problem(resume.error()));
    return std::optional<Introduction>(*resume);
  }
  Result<wire::Hello> hello = wire::decode<wire::Hello>(body);
  if (!hello) return fail(Problem(hello.error()));
  return std::optional<Introduction>(std::move(*hello));
}

Outcome<void> InboundHandshakes::check_versions(int fd, wire::ByteView body) {
  const Result<wire::VersionRange> versions = wire::hello_versions(body);
  if (!versions) return fail(Problem(versions.error()));
  if (wire::common_version(*versions, wire::kOurVersions)) return {};
  const wire::Bytes answer = wire::encode(wire::Refuse{.code = wire::RefuseCode::kVersion});
  static_cast<void>(send_some(fd, answer));
  return fail(Problem(wire::version_mismatch(*versions, wire::kOurVersions)));
}

void InboundHandshakes::on_hello(std::uint64_t id, const wire::Hello& hello) {
  InboundHandshake& handshake = handshakes_.at(id);
  const int fd = handshake.fd.get();
  if (const std::optional<wire::Refuse> refusal = events_->check_hello(hello)) {
    static_cast<void>(send_some(fd, wire::encode(*refusal)));
    if (const std::uint64_t number = refused_.due(); number != 0) {
      const bool is_duplicate = refusal->code == wire::RefuseCode::kDuplicate;
      BL_INFO(kLogNet, "a control connection from %s (pid %u) is %s (number %llu): %s",
              hello.host.c_str(), hello.pid, is_duplicate ? "closed" : "refused",
              static_cast<unsigned long long>(number), refusal->text.c_str());
    }
    return close(id);
  }
  const wire::HelloAck ack{.version = *wire::common_version(hello.versions, wire::kOurVersions),
                           .process = self_->id,
                           .host = self_->host,
                           .pid = self_->pid,
                           .clock_ns = static_cast<std::uint64_t>(now_ns()),
                           .resume = hello.resume ? events_->make_resume_offer() : std::nullopt};
  // The send buffer of a new socket has room for all of it.
  static_cast<void>(send_some(fd, wire::encode(ack)));
  NewStream stream = release(id);
  events_->on_introduced({.fd = std::move(stream.fd),
                          .peer = {.id = hello.process, .host = hello.host, .pid = hello.pid},
                          .direction = Direction::kAnswered,
                          .resume = resume_terms(ack.resume, hello.resume),
                          .input = std::move(stream.input)});
}

void InboundHandshakes::on_resume(std::uint64_t id, const wire::Resume& resume) {
  const int fd = handshakes_.at(id).fd.get();
  const Result<wire::ResumeAck, wire::Refuse> answer = channels_->check_resume(resume);
  if (!answer) {
    static_cast<void>(send_some(fd, wire::encode(answer.error())));
    if (const std::uint64_t number = refused_.due(); number != 0) {
      BL_INFO(kLogNet, "a control connection from %s is not resumed (number %llu): %s",
              remote_text(fd).c_str(), static_cast<unsigned long long>(number),
              answer.error().text.c_str());
    }
    return close(id);
  }
  // The send buffer of a new socket has room for all of it.
  static_cast<void>(send_some(fd, wire::encode(*answer)));
  channels_->resume(resume, release(id));
}

NewStream InboundHandshakes::release(std::uint64_t id) {
  const auto found = handshakes_.find(id);
  InboundHandshake& handshake = found->second;
  poller_->remove(handshake.fd.get(), handshake.key);
  NewStream stream{.fd = std::move(handshake.fd), .input = std::move(handshake.input)};
  erase(found);
  return stream;
}

void InboundHandshakes::drop(std::uint64_t id, const std::string& why) {
  if (const std::uint64_t number = dropped_.due(); number != 0) {
    BL_WARN("a control connection from %s is dropped (number %llu): %s",
            remote_text(handshakes_.at(id).fd.get()).c_str(),
            static_cast<unsigned long long>(number), why.c_str());
  }
  close(id);
}

void InboundHandshakes::close(std::uint64_t id) {
  const auto found = handshakes_.find(id);
  poller_->remove(found->second.fd.get(), found->second.key);
  erase(found);
}

void InboundHandshakes::erase(Handshakes::iterator handshake) {
  handshakes_.erase(handshake);
  if (handshakes_.empty()) limit_ = most_inbound();
}

}  // namespace beeline
