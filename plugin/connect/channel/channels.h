// SPDX-License-Identifier: Apache-2.0
//
// All control channels of this process: reading what comes, and noticing when one ends.
// Threads: the control thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "common/base/log.h"
#include "plugin/connect/channel/channel_events.h"
#include "plugin/connect/channel/peer_limits.h"

namespace beeline {

class Channels {
 public:
  Channels(Poller& poller, std::chrono::milliseconds peer_timeout, const PeerLimits& limits,
           ChannelEvents& events)
      : poller_(&poller), peer_timeout_(peer_timeout), limits_(limits), events_(&events) {}
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;
  ~Channels();

  // Null: it could not be made, which has been logged. Call `read` when the caller is ready for the
  // messages that came with the introduction.
  Channel* add(Introduced introduced);
  void read(std::uint64_t id);
  // Channels with more messages than one turn could handle. Each gets its next turn here.
  bool has_backlog() const noexcept { return !backlog_.empty(); }
  void go_on();

  // The limit, in words, that keeps this peer from one more channel. Empty if there is room.
  std::optional<std::string> make_room(const wire::ProcessId& process);
  // Ends the oldest channel without connections. Returns false if there is none.
  bool drop_unused(const std::string& why);

  // Null: none is open. Of several the newest: the older ones may be dead without knowing it.
  Channel* find_process(const wire::ProcessId& process) const;
  Channel* find(std::uint64_t id) const;

  bool is_empty() const noexcept { return channels_.empty(); }
  std::size_t link_count() const noexcept;

  // Ends the links of a device of ours that is gone.
  void lose_device(const DeviceContext& device);

  // Says on every channel that no more comes from us; they go when the peers agree, or after a
  // while.
  void close_all();
  // Ends all of them without a word.
  void give_up() noexcept;

 private:
  void on_event(std::uint64_t id, std::uint32_t events);
  // An error is the end of the channel, in words.
  Result<void, std::string> receive(Channel& channel);
  Result<void, std::string> handle_frames(Channel& channel);
  Failure<std::string> break_with(const Channel& channel, std::string cause);
  void end(std::uint64_t id, const std::string& cause);
  using All = std::map<std::uint64_t, std::unique_ptr<Channel>>;
  bool is_unused(const Channel& channel) const;
  template <class Eligible>
  bool drop_oldest(const std::string& why, Eligible&& eligible);
  std::string cause_of(const Error& error) const;

  Poller* poller_;
  std::chrono::milliseconds peer_timeout_;
  PeerLimits limits_;
  ChannelEvents* events_;
  LogLimit broken_{5};
  LogLimit full_{5};
  std::uint64_t last_id_ = 0;
  All channels_;  // by age
  std::set<std::uint64_t> backlog_;
};

}  // namespace beeline
