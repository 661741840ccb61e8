// SPDX-License-Identifier: Apache-2.0
//
// All control channels of this process: reads their messages, notices when a channel ends, and
// limits their number.
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
#include "common/base/problem.h"
#include "plugin/connect/channel/channel_events.h"
#include "plugin/connect/channel/peer_limits.h"

namespace beeline {

class Channels {
 public:
  struct Timeouts {
    std::chrono::milliseconds first_message{};  // how long a fresh channel is worth keeping
    std::chrono::milliseconds peer{};           // TCP_USER_TIMEOUT
  };

  Channels(Poller& poller, const Timeouts& timeouts, const PeerLimits& limits,
           ChannelEvents& events)
      : poller_(&poller), timeouts_(timeouts), limits_(limits), events_(&events) {}
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;
  ~Channels();

  // Logs a failure, and returns null. The caller calls read() when it is ready for the messages
  // that came with the introduction.
  Channel* add(Introduced introduced);
  void read(std::uint64_t id);
  // Some channels had more messages than one turn could handle. run_backlog() gives each another
  // turn.
  bool has_backlog() const noexcept { return !backlog_.empty(); }
  void run_backlog();

  // Makes room for one more channel with this process. Returns a sentence that names the limit if
  // that is impossible.
  std::optional<std::string> make_room(const wire::ProcessId& process);
  // Ends a channel that nothing uses. Fresh channels go last; otherwise the oldest goes first.
  // Returns false if all are in use.
  bool drop_unused(const std::string& why);

  // Returns null if no channel is open. Of several, it returns the newest, because the older ones
  // may be dead without this process knowing it.
  Channel* find_process(const wire::ProcessId& process) const;
  Channel* find(std::uint64_t id) const;

  bool is_empty() const noexcept { return channels_.empty(); }
  std::size_t link_count() const noexcept;

  // Ends all links that use this local device, which is gone.
  void lose_device(const DeviceContext& device);

  // Closes all channels in good order: each ends when its peer agrees, or after a timeout.
  void close_all();
  // Closes all channels at once, without telling the peers.
  void abort_all() noexcept;

 private:
  using All = std::map<std::uint64_t, std::unique_ptr<Channel>>;

  void on_event(std::uint64_t id, std::uint32_t events);
  // An error ends the channel.
  Outcome<void> receive(Channel& channel);
  Outcome<void> handle_frames(Channel& channel);
  // Logs that the peer does what no Beeline does, whether or not a comm is lost by it.
  Failure<Problem> report_violation(const Channel& channel, std::string cause);
  void end(std::uint64_t id, const std::string& cause);
  bool is_unused(const Channel& channel) const;
  template <class Eligible>
  bool drop_oldest(const std::string& why, Eligible&& eligible);
  std::string cause_of(const Error& error) const;

  Poller* poller_;
  Timeouts timeouts_;
  PeerLimits limits_;
  ChannelEvents* events_;
  LogLimit violations_{5};
  LogLimit dropped_{5};
  std::uint64_t last_id_ = 0;
  All channels_;  // oldest first
  std::set<std::uint64_t> backlog_;
};

}  // namespace beeline
