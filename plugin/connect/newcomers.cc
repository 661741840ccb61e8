// SPDX-License-Identifier: Apache-2.0
//
// The door, and who stands in it.
#include "plugin/connect/newcomers.h"

#include <array>

#include "plugin/base/clock.h"
#include "plugin/base/log.h"
#include "plugin/connect/fork_guard.h"
#include "plugin/connect/socket.h"

namespace beeline {
namespace {

constexpr std::size_t kMostNewcomers = 256;  // at once; then the oldest goes
constexpr std::int64_t kDoorPauseNs = 100 * kNsPerMs;

}  // namespace

Newcomers::~Newcomers() {
  if (door_) {
    poller_->remove(door_.get(), door_key_);
    unguard_from_fork(door_.get());
  }
  for (auto& [id, newcomer] : newcomers_) poller_->remove(newcomer.fd.get(), newcomer.key);
}

Status Newcomers::open_door(UniqueFd listening) {
  door_ = std::move(listening);
  guard_from_fork(door_.get());
  door_key_ = BL_TRY(poller_->add(door_.get(), EPOLLIN, [this](std::uint32_t) { on_door(); }));
  return {};
}

void Newcomers::on_door() {
  for (;;) {
    Result<std::optional<UniqueFd>> accepted = accept_one(door_.get());
    if (!accepted) {
      // Most likely no descriptors are left. The caller stays in the queue; do not spin over it.
      BL_WARN_LIMITED(3, "%s", describe(accepted.error()).c_str());
      poller_->want(door_.get(), door_key_, 0);
      poller_->at(now_ns() + kDoorPauseNs,
                  [this] { poller_->want(door_.get(), door_key_, EPOLLIN); });
      return;
    }
    if (!*accepted) return;
    admit(std::move(**accepted));
  }
}

void Newcomers::admit(UniqueFd fd) {
  if (newcomers_.size() >= kMostNewcomers) {
    drop(newcomers_.begin()->first, "too many others wait");
  }
  const std::uint64_t id = ++last_id_;
  const auto key = poller_->add(fd.get(), EPOLLIN, [this, id](std::uint32_t) { on_event(id); });
  if (!key) return;
  newcomers_.emplace(id, Newcomer{.fd = std::move(fd), .key = *key, .input = {}});
  poller_->at(now_ns() + patience_.count() * kNsPerMs, [this, id] {
    if (newcomers_.contains(id)) drop(id, "it did not introduce itself in time");
  });
}

void Newcomers::on_event(std::uint64_t id) {
  const auto found = newcomers_.find(id);
  if (found == newcomers_.end()) return;
  const Result<std::optional<wire::Hello>, std::string> hello = read_hello(found->second);
  if (!hello && !found->second.has_spoken) {
    // Two processes that dialed each other, one of which has thought better of it; or a port scan.
    BL_INFO(kLogNet, "a control connection from %s ended before it said anything",
            remote_text(found->second.fd.get()).c_str());
    return forget(id);
  }
  if (!hello) return drop(id, hello.error());
  if (*hello) introduce(id, **hello);
}

Result<std::optional<wire::Hello>, std::string> Newcomers::read_hello(Newcomer& newcomer) {
  std::array<std::byte, wire::kFrameHeadBytes + wire::kMaxHelloBytes> room;
  const Result<std::size_t> got = receive_some(newcomer.fd.get(), room);
  if (!got) return fail("it went away again: " + describe(got.error()));
  newcomer.has_spoken = newcomer.has_spoken || *got > 0;
  newcomer.input.append(wire::ByteView(room).first(*got));
  const Result<std::optional<wire::Frame>> frame = newcomer.input.next(wire::kMaxHelloBytes);
  if (!frame) return fail(describe(frame.error()));
  if (!*frame) return std::optional<wire::Hello>{};
  if ((*frame)->type != wire::MessageType::kHello) {
    return fail("it began with " + std::string(to_string((*frame)->type)));
  }
  const Result<wire::VersionRange> versions = wire::hello_versions((*frame)->body);
  if (!versions) return fail(describe(versions.error()));
  if (!wire::common_version(*versions, wire::kOurVersions)) {
    const wire::Bytes answer = wire::encode(wire::Refuse{.code = wire::RefuseCode::kVersion});
    static_cast<void>(send_some(newcomer.fd.get(), answer));
    return fail(wire::version_mismatch(*versions, wire::kOurVersions));
  }
  Result<wire::Hello> hello = wire::decode<wire::Hello>((*frame)->body);
  if (!hello) return fail(describe(hello.error()));
  return std::optional(std::move(*hello));
}

void Newcomers::introduce(std::uint64_t id, const wire::Hello& hello) {
  Newcomer& newcomer = newcomers_.at(id);
  const int fd = newcomer.fd.get();
  if (const std::optional<wire::Refuse> refusal = hooks_.judge(hello)) {
    static_cast<void>(send_some(fd, wire::encode(*refusal)));
    BL_INFO(kLogNet, "a control connection from %s (pid %u) is refused: %s", hello.host.c_str(),
            hello.pid, refusal->text.c_str());
    forget(id);
    return;
  }
  const wire::HelloAck ack{.version = *wire::common_version(hello.versions, wire::kOurVersions),
                           .process = self_->id,
                           .host = self_->host,
                           .pid = self_->pid};
  // A fresh socket takes so few bytes whole.
  static_cast<void>(send_some(fd, wire::encode(ack)));
  Introduced introduced{.fd = {},
                        .peer = {.id = hello.process, .host = hello.host, .pid = hello.pid},
                        .direction = Direction::kAnswered,
                        .input = std::move(newcomer.input)};
  poller_->remove(fd, newcomer.key);
  introduced.fd = std::move(newcomer.fd);
  newcomers_.erase(id);
  hooks_.on_introduced(std::move(introduced));
}

void Newcomers::drop(std::uint64_t id, const std::string& why) {
  if (const std::uint64_t number = dropped_.due(); number != 0) {
    BL_WARN("a control connection from %s is dropped (number %llu): %s",
            remote_text(newcomers_.at(id).fd.get()).c_str(),
            static_cast<unsigned long long>(number), why.c_str());
  }
  forget(id);
}

void Newcomers::forget(std::uint64_t id) {
  const auto found = newcomers_.find(id);
  poller_->remove(found->second.fd.get(), found->second.key);
  newcomers_.erase(found);
}

}  // namespace beeline
