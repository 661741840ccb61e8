// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/channel/channels.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/check/assert.h"
#include "plugin/connect/socket/fork_guard.h"
#include "plugin/connect/socket/socket.h"

namespace beeline {
namespace {

constexpr std::size_t kReadBytes = 65536;
// A channel's turn ends after this time, so that the other channels get theirs. One message may
// take milliseconds, if a queue pair is created for it.
constexpr int kReadsPerTurn = 16;
constexpr std::int64_t kTurnNs = 2 * kNsPerMs;
// How long the peer may take to close its end of a channel that this process closes.
constexpr std::int64_t kCloseTimeoutNs = 2 * kNsPerSec;
constexpr std::chrono::milliseconds kLongestStreamTimeout{5000};

std::size_t most_channels(const PeerLimits& limits) noexcept {
  if (limits.channels != 0) return limits.channels;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return SIZE_MAX;
  return limit.rlim_cur / 4 * 3;  // divided first: "unlimited" times 3 would overflow
}

}  // namespace

std::string seconds_text(std::chrono::milliseconds time) {
  if (time.count() % 1000 != 0) return std::to_string(time.count()) + " ms";
  return std::to_string(time.count() / 1000) + " s";
}

Channels::~Channels() {
  for (const auto& [id, channel] : channels_) channel->outbox().close();
}

std::chrono::milliseconds Channels::stream_timeout(bool can_resume) const {
  return can_resume ? std::min(timeouts_.peer / 4, kLongestStreamTimeout) : timeouts_.peer;
}

Result<Poller::Key> Channels::watch(int fd, std::uint64_t id) {
  return poller_->add(fd, EPOLLIN, [this, id](std::uint32_t events) { on_event(id, events); });
}

Channel* Channels::add(Introduced introduced) {
  const int fd = introduced.fd.get();
  const Status watched = set_channel_options(fd, stream_timeout(introduced.resume.has_value()));
  if (!watched) {
    BL_WARN("control channel to %s: %s", introduced.peer.text().c_str(),
            describe(watched.error()).c_str());
    return nullptr;
  }
  const std::uint64_t id = ++last_id_;
  auto channel = std::make_unique<Channel>(id, std::move(introduced), *poller_);
  const Result<Poller::Key> key = watch(fd, id);
  if (!key) {
    BL_WARN("control channel to %s: %s", channel->peer().text().c_str(),
            describe(key.error()).c_str());
    return nullptr;
  }
  channel->outbox().set_key(*key);
  guard_from_fork(fd);
  BL_INFO(kLogNet, "control channel with %s is up", channel->peer().text().c_str());
  return channels_.emplace(id, std::move(channel)).first->second.get();
}

bool Channels::is_unused(const Channel& channel) const {
  return channel.links().size() == 0 && !backlog_.contains(channel.id()) &&
         channel.outbox().is_empty() && !events_->has_handshake_on(channel);
}

template <class Eligible>
bool Channels::drop_oldest(const std::string& why, Eligible&& eligible) {
  const auto found = std::ranges::find_if(channels_, [&](const auto& entry) {
    return eligible(*entry.second) && is_unused(*entry.second);
  });
  if (found == channels_.end()) return false;
  if (const std::uint64_t number = dropped_.due(); number != 0) {
    BL_WARN(
        "the control channel with %s, which carries no connection, is dropped (number %llu): %s",
        found->second->peer().text().c_str(), static_cast<unsigned long long>(number), why.c_str());
  }
  end(found->first, why);
  return true;
}

bool Channels::drop_unused(const std::string& why) {
  const auto is_not_fresh = [&](const Channel& channel) {
    return !channel.is_fresh(timeouts_.first_message);
  };
  return drop_oldest(why, is_not_fresh) || drop_oldest(why, [](const Channel&) { return true; });
}

// A peer with too many channels keeps the newest ones, because the older ones may be dead without
// this process knowing it.
std::optional<std::string> Channels::make_room(const wire::ProcessId& process) {
  const auto is_its = [&](const Channel& channel) { return channel.peer().id == process; };
  const auto its_own = static_cast<std::size_t>(
      std::ranges::count_if(channels_, [&](const auto& entry) { return is_its(*entry.second); }));
  if (its_own >= limits_.channels_of_process) {
    const std::string text = "it has " + std::to_string(its_own) +
                             " control channels with this process, and may have no more";
    if (!drop_oldest(text, is_its)) return text;
  }
  if (channels_.size() >= most_channels(limits_)) {
    const std::string text = "this process has " + std::to_string(channels_.size()) +
                             " control channels, which is the limit (three quarters of ulimit -n)";
    if (!drop_unused(text)) return text;
  }
  return std::nullopt;
}

Channel* Channels::find(std::uint64_t id) const {
  const auto found = channels_.find(id);
  return found == channels_.end() ? nullptr : found->second.get();
}

Channel* Channels::find_process(const wire::ProcessId& process) const {
  for (auto it = channels_.rbegin(); it != channels_.rend(); ++it) {
    Channel& channel = *it->second;
    if (channel.peer().id == process && !channel.is_closing() && !channel.is_lost()) {
      return &channel;
    }
  }
  return nullptr;
}

std::size_t Channels::link_count() const noexcept {
  std::size_t count = 0;
  for (const auto& [id, channel] : channels_) count += channel->links().size();
  return count;
}

void Channels::lose_device(const DeviceContext& device) {
  for (const auto& [id, channel] : channels_) channel->links().lose_device(device);
}

std::vector<std::shared_ptr<CommLink>> Channels::links_on(const DeviceContext& device) const {
  std::vector<std::shared_ptr<CommLink>> found = links();
  std::erase_if(found, [&](const auto& link) { return !link->is_on(device); });
  return found;
}

std::vector<std::shared_ptr<CommLink>> Channels::links() const {
  std::vector<std::shared_ptr<CommLink>> found;
  for (const auto& [id, channel] : channels_)
    std::ranges::move(channel->links().all(), std::back_inserter(found));
  return found;
}

void Channels::on_event(std::uint64_t id, std::uint32_t events) {
  Channel* const channel = find(id);
  if (channel == nullptr) return;
  if ((events & EPOLLOUT) != 0) {
    channel->outbox().flush();
    if (channel->is_closing()) channel->start_closing();
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
  if (backlog_.contains(id)) return;  // earlier messages are handled first
  const Outcome<void> received = receive(*channel);
  if (!received) end_or_lose(*channel, received.error());
}

void Channels::read(std::uint64_t id) {
  Channel* const channel = find(id);
  if (channel == nullptr) return;
  const Outcome<void> handled = handle_frames(*channel);
  if (!handled) end_or_lose(*channel, handled.error());
}

void Channels::run_backlog() {
  const std::set<std::uint64_t> turns = std::exchange(backlog_, {});
  for (const std::uint64_t id : turns) read(id);
}

Outcome<void> Channels::receive(Channel& channel) {
  std::array<std::byte, kReadBytes> buffer;
  for (int i = 0; i < kReadsPerTurn; ++i) {
    const Result<std::size_t> got = channel.outbox().receive(buffer);
    if (channel.outbox().has_overflowed()) return report_violation(channel, "it does not read");
    if (!got) {
      const Errc code = got.error().sys_errno == ETIMEDOUT ? Errc::kTimeout : Errc::kPeerClosed;
      return fail(Problem(code, cause_of(got.error(), channel)));
    }
    if (*got == 0) return {};
    channel.input().append(wire::ByteView(buffer).first(*got));
    BL_TRY(handle_frames(channel));
    if (backlog_.contains(channel.id())) return {};
  }
  return {};
}

Outcome<void> Channels::handle_frames(Channel& channel) {
  const std::int64_t end_of_turn = now_ns() + kTurnNs;
  for (;;) {
    Result<std::optional<wire::Frame>> frame = channel.input().next();
    if (!frame)
      return report_violation(channel, "it broke the protocol: " + describe(frame.error()));
    if (!*frame) return {};
    if (channel.is_closing()) continue;  // the peer will see that the channel has ended
    const Status handled = events_->on_message(channel, **frame);
    if (!handled)
      return report_violation(channel, "it broke the protocol: " + describe(handled.error()));
    if (now_ns() > end_of_turn) {
      backlog_.insert(channel.id());
      return {};
    }
  }
}

Failure<Problem> Channels::report_violation(const Channel& channel, std::string cause) {
  if (const std::uint64_t number = violations_.due(); number != 0) {
    BL_WARN("the control channel with %s is dropped (number %llu): %s",
            channel.peer().text().c_str(), static_cast<unsigned long long>(number), cause.c_str());
  }
  return fail(Problem(Errc::kProtocol, std::move(cause)));
}

std::string Channels::cause_of(const Error& error, const Channel& channel) const {
  // Whether its process lives is not known before it is dialed again.
  const bool resumes = is_worth_resuming(channel);
  if (error.code == Errc::kPeerClosed) {
    return resumes ? "the connection was closed without goodbye" : kProcessEnded;
  }
  switch (error.sys_errno) {
    case ECONNRESET:
    case EPIPE:
      return resumes ? "the connection was reset"
                     : std::string(kProcessEnded) + " (connection reset)";
    case ETIMEDOUT:
      return "its host has been silent for " +
             seconds_text(stream_timeout(channel.resume() != nullptr)) +
             ": it is down, or the network to it is interrupted";
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN: return "its host cannot be reached any more (" + describe(error) + ")";
    default: return "the connection failed (" + describe(error) + ")";
  }
}

void Channels::end_or_lose(Channel& channel, const Problem& problem) {
  if (problem.code == Errc::kProtocol || !is_worth_resuming(channel)) {
    return end(channel.id(), problem.text);
  }
  const std::chrono::nanoseconds silent =
      problem.code == Errc::kTimeout ? stream_timeout(true) : std::chrono::milliseconds(0);
  lose(channel, problem.text, silent.count());
}

void Channels::end(std::uint64_t id, const std::string& cause) {
  const auto found = channels_.find(id);
  BL_ASSERT(found != channels_.end(), "a channel ends once");
  const std::unique_ptr<Channel> channel = std::move(found->second);
  channels_.erase(found);
  backlog_.erase(id);
  losses_.erase(id);
  redialer_.cancel(id);
  channel->outbox().close();
  const std::size_t carried = channel->links().kill(cause);
  if (carried > 0) {
    // Not a warning, because many programs end without closing their comms. A comm that is used
    // after this, or has outstanding requests, logs a warning with its own device and peer.
    BL_INFO(kLogNet, "%s has lost %s: %s; %zu %s ended with it", host_name().c_str(),
            channel->peer().text().c_str(), cause.c_str(), carried,
            carried == 1 ? "connection" : "connections");
  } else {
    BL_INFO(kLogNet, "control channel with %s has ended", channel->peer().text().c_str());
  }
  events_->on_channel_end(*channel, cause);
}

void Channels::abort_all() noexcept {
  for (const auto& [id, channel] : channels_) {
    try {
      channel->links().kill("the cause is at " + host_name() +
                            ": the control thread of its process has failed");
    } catch (const std::exception&) {
      // Out of memory for the message: these links stay open until their peers end them.
    }
    channel->outbox().close();
  }
}

void Channels::close_all() {
  while (!losses_.empty()) end(losses_.begin()->first, "nothing needs it any more");
  for (const auto& [id, channel] : channels_) {
    if (channel->is_closing()) continue;
    channel->start_closing();
    poller_->at(now_ns() + kCloseTimeoutNs, [this, id = id] {
      if (find(id) != nullptr) end(id, "it did not close its end in time");
    });
  }
}

}  // namespace beeline
