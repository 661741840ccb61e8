// SPDX-License-Identifier: Apache-2.0
//
// Reading channels, and the end of channels.
#include "plugin/connect/channel/channels.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "plugin/connect/socket/fork_guard.h"
#include "plugin/connect/socket/socket.h"

namespace beeline {
namespace {

constexpr std::size_t kReadBytes = 65536;
// A turn of a channel ends after this time, and the other channels have theirs. A message for which
// a queue pair is made may take milliseconds.
constexpr int kReadsInARow = 16;
constexpr std::int64_t kTurnNs = 2 * kNsPerMs;
// For the peer to agree to an orderly end.
constexpr std::int64_t kFarewellNs = 2 * kNsPerSec;

}  // namespace

Channels::~Channels() {
  for (const auto& [id, channel] : channels_) channel->outbox().close();
}

Channel* Channels::add(Introduced introduced) {
  const int fd = introduced.fd.get();
  const Status watched = make_watched(fd, peer_timeout_);
  if (!watched) {
    BL_WARN("control channel to %s: %s", introduced.peer.text().c_str(),
            describe(watched.error()).c_str());
    return nullptr;
  }
  const std::uint64_t id = ++last_id_;
  auto channel = std::make_unique<Channel>(id, std::move(introduced), *poller_);
  const auto key =
      poller_->add(fd, EPOLLIN, [this, id](std::uint32_t events) { on_event(id, events); });
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
  return channel.link_count() == 0 && !backlog_.contains(channel.id()) &&
         channel.outbox().is_empty() && !events_->has_handshake_on(channel);
}

template <class Eligible>
bool Channels::drop_oldest(const std::string& why, Eligible&& eligible) {
  const auto found = std::ranges::find_if(channels_, [&](const auto& entry) {
    return eligible(*entry.second) && is_unused(*entry.second);
  });
  if (found == channels_.end()) return false;
  if (const std::uint64_t number = full_.due(); number != 0) {
    BL_WARN(
        "the control channel with %s, which carries no connection, is dropped (number %llu): %s",
        found->second->peer().text().c_str(), static_cast<unsigned long long>(number), why.c_str());
  }
  end(found->first, why);
  return true;
}

bool Channels::drop_unused(const std::string& why) {
  return drop_oldest(why, [](const Channel&) { return true; });
}

// A peer with many channels keeps the newest, because the connections of older ones may be dead
// unnoticed.
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
    if (channel.peer().id == process && !channel.is_closing()) return &channel;
  }
  return nullptr;
}

std::size_t Channels::link_count() const noexcept {
  std::size_t count = 0;
  for (const auto& [id, channel] : channels_) count += channel->link_count();
  return count;
}

void Channels::lose_device(const DeviceContext& device) {
  for (const auto& [id, channel] : channels_) channel->lose_device(device);
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
  const Result<void, std::string> received = receive(*channel);
  if (!received) end(id, received.error());
}

void Channels::read(std::uint64_t id) {
  Channel* const channel = find(id);
  if (channel == nullptr) return;
  const Result<void, std::string> handled = handle_frames(*channel);
  if (!handled) end(id, handled.error());
}

void Channels::go_on() {
  const std::set<std::uint64_t> turns = std::exchange(backlog_, {});
  for (const std::uint64_t id : turns) read(id);
}

Result<void, std::string> Channels::receive(Channel& channel) {
  std::array<std::byte, kReadBytes> room;
  for (int i = 0; i < kReadsInARow; ++i) {
    const Result<std::size_t> got = channel.outbox().receive(room);
    if (channel.outbox().has_overflowed()) return break_with(channel, "it does not read");
    if (!got) return fail(cause_of(got.error()));
    if (*got == 0) return {};
    channel.input().append(wire::ByteView(room).first(*got));
    BL_TRY(handle_frames(channel));
    if (backlog_.contains(channel.id())) return {};
  }
  return {};
}

Result<void, std::string> Channels::handle_frames(Channel& channel) {
  const std::int64_t end_of_turn = now_ns() + kTurnNs;
  for (;;) {
    Result<std::optional<wire::Frame>> frame = channel.input().next();
    if (!frame) return break_with(channel, "it broke the protocol: " + describe(frame.error()));
    if (!*frame) return {};
    if (channel.is_closing()) continue;  // whoever said it will hear that we have gone
    const Status handled = events_->on_message(channel, **frame);
    if (!handled) return break_with(channel, "it broke the protocol: " + describe(handled.error()));
    if (now_ns() > end_of_turn) {
      backlog_.insert(channel.id());
      return {};
    }
  }
}

// What no Beeline does, whether or not a comm is lost by it.
Failure<std::string> Channels::break_with(const Channel& channel, std::string cause) {
  if (const std::uint64_t number = broken_.due(); number != 0) {
    BL_WARN("the control channel with %s is dropped (number %llu): %s",
            channel.peer().text().c_str(), static_cast<unsigned long long>(number), cause.c_str());
  }
  return fail(std::move(cause));
}

std::string Channels::cause_of(const Error& error) const {
  if (error.code == Errc::kPeerClosed) return "its process ended without goodbye";
  switch (error.sys_errno) {
    case ECONNRESET:
    case EPIPE: return "its process ended without goodbye (connection reset)";
    case ETIMEDOUT:
      return "its host has been silent for " + std::to_string(peer_timeout_.count() / 1000) +
             " s: it is down, or the network to it is interrupted";
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN: return "its host cannot be reached any more (" + describe(error) + ")";
    default: return "the connection failed (" + describe(error) + ")";
  }
}

void Channels::end(std::uint64_t id, const std::string& cause) {
  const auto found = channels_.find(id);
  const std::unique_ptr<Channel> channel = std::move(found->second);
  channels_.erase(found);
  backlog_.erase(id);
  channel->outbox().close();
  const std::size_t carried = channel->kill_links(cause);
  if (carried > 0) {
    // Not a warning: many programs end without closing anything. A comm that is used after this, or
    // has requests under way, warns with its own device and peer.
    BL_INFO(kLogNet, "%s has lost %s: %s; %zu %s ended with it", host_name().c_str(),
            channel->peer().text().c_str(), cause.c_str(), carried,
            carried == 1 ? "connection" : "connections");
  } else {
    BL_INFO(kLogNet, "control channel with %s has ended", channel->peer().text().c_str());
  }
  events_->on_channel_end(*channel, cause);
}

void Channels::give_up() noexcept {
  for (const auto& [id, channel] : channels_) {
    try {
      channel->kill_links("the cause is at " + host_name() +
                          ": the control thread of its process has failed");
    } catch (const std::exception&) {
      // No memory even for the words: this one stays open, and its peer will end it.
    }
    channel->outbox().close();
  }
}

void Channels::close_all() {
  for (const auto& [id, channel] : channels_) {
    if (channel->is_closing()) continue;
    channel->start_closing();
    poller_->at(now_ns() + kFarewellNs, [this, id = id] {
      if (find(id) != nullptr) end(id, "it did not answer our goodbye");
    });
  }
}

}  // namespace beeline
