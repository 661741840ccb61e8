// SPDX-License-Identifier: Apache-2.0
//
// All control channels of this process: reads their messages, notices when a channel ends or is
// lost, has lost ones dialed again, and limits their number. The functions for lost channels are in
// lost_channels.cc.
// Threads: the control thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "common/base/problem.h"
#include "plugin/connect/channel/channel_events.h"
#include "plugin/connect/channel/redialer.h"
#include "plugin/repair/peer_silence.h"

namespace beeline {

std::string seconds_text(std::chrono::milliseconds time);  // "20 s", "1500 ms"

// Limits on the connections and descriptors that peers may use. A peer that has the token of a
// listener is accepted, but it may still be malicious or faulty. The limits leave room for other
// peers.
struct PeerLimits {
  // Each listener. NCCL makes one connection, or a few, with each.
  std::size_t waiting_of_channel = 32;  // being set up, by channel; any more are refused
  std::size_t waiting = 64;             // being set up; for another one, the oldest is refused
  std::size_t unaccepted = 64;          // set up but not accepted yet; any more are refused
  // Two processes need one channel, and for a short time a second one.
  std::size_t channels_of_process = 4;
  // All channels. 0: three quarters of the descriptors that this process may have.
  std::size_t channels = 0;
};

class Channels {
 public:
  struct Timeouts {
    std::chrono::milliseconds first_message{};  // how long a fresh channel is worth keeping
    std::chrono::milliseconds peer{};           // silence after which a peer counts as dead
    std::chrono::milliseconds outage{};         // the same, if it may be the network; 0: for ever
  };

  Channels(Poller& poller, const ProcessName& self, const Timeouts& timeouts,
           const PeerLimits& limits, ChannelEvents& events)
      : poller_(&poller),
        self_(&self),
        timeouts_(timeouts),
        limits_(limits),
        events_(&events),
        redialer_(poller, self, *this) {}
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

  // Whether a channel with this process is lost and being dialed again.
  bool is_redialing(const wire::ProcessId& process) const;
  Result<wire::ResumeAck, wire::Refuse> check_resume(const wire::Resume& resume);
  // After such an answer. The channel goes on with this connection.
  void resume(const wire::Resume& resume, NewStream stream);
  void on_link_gone(const GoneLink& link);

  // Returns null if no channel is open. Of several, it returns the newest, because the older ones
  // may be dead without this process knowing it.
  Channel* find_process(const wire::ProcessId& process) const;
  Channel* find(std::uint64_t id) const;

  bool is_empty() const noexcept { return channels_.empty(); }
  std::size_t link_count() const noexcept;

  // Ends all links that use this local device, which is gone.
  void lose_device(const DeviceContext& device);
  std::vector<std::shared_ptr<CommLink>> links_on(const DeviceContext& device) const;
  // The links of all comms that are not closed.
  std::vector<std::shared_ptr<CommLink>> links() const;

  // Closes all channels in good order: each ends when its peer agrees, or after a timeout.
  void close_all();
  // Closes all channels at once, without telling the peers.
  void abort_all() noexcept;

  // --- For the redialer ---
  // The peer has accepted RESUME. It says that its own attempts up to this one are void.
  void on_redialed(std::uint64_t channel, NewStream stream, std::uint32_t attempt);
  // Nothing listens any more: the peer's process is dead.
  void on_peer_dead(std::uint64_t channel, const std::string& why);
  // The peer does not have the channel any more, or something else answers in its place.
  void on_refused(std::uint64_t channel, const std::string& why);
  // The peer has asked to wait.
  void on_peer_alive(std::uint64_t channel);
  // No address has answered. The next try follows, unless the call cancels the redial.
  void on_no_answer(std::uint64_t channel, const std::string& last_error);

 private:
  using All = std::map<std::uint64_t, std::unique_ptr<Channel>>;
  struct Loss {
    std::string cause;
    std::int64_t since_ns = 0;
    PeerSilence silence = {};
    bool is_logged = false;
    bool is_outage_logged = false;
  };

  void on_event(std::uint64_t id, std::uint32_t events);
  // An error ends the channel. With kProtocol it is not to be resumed.
  Outcome<void> receive(Channel& channel);
  Outcome<void> handle_frames(Channel& channel);
  // Logs that the peer does what no Beeline does, whether or not a comm is lost by it.
  Failure<Problem> report_violation(const Channel& channel, std::string cause);
  Result<Poller::Key> watch(int fd, std::uint64_t id);
  void end(std::uint64_t id, const std::string& cause);
  void end_or_lose(Channel& channel, const Problem& problem);

  // --- Lost channels ---
  bool is_worth_resuming(const Channel& channel) const;
  void lose(Channel& channel, const std::string& cause, std::int64_t silent_ns);
  void go_on(Channel& channel, NewStream stream);
  Channel* find_by_token(const wire::ProcessId& process, const wire::Token& token) const;
  void log_absence(std::uint64_t channel, const std::string& why);
  void log_loss(Channel& channel, Loss& loss);

  PeerSilence::Limits silence_limits() const noexcept;
  PeerSilence::Facts facts_about(const Channel& channel) const;
  // TCP_USER_TIMEOUT. Where the channel can be resumed, a silent connection is soon replaced.
  std::chrono::milliseconds stream_timeout(bool can_resume) const;
  bool is_unused(const Channel& channel) const;
  template <class Eligible>
  bool drop_oldest(const std::string& why, Eligible&& eligible);
  static constexpr const char* kProcessEnded = "its process ended without goodbye";
  std::string cause_of(const Error& error, const Channel& channel) const;

  Poller* poller_;
  const ProcessName* self_;
  Timeouts timeouts_;
  PeerLimits limits_;
  ChannelEvents* events_;
  LogLimit violations_{5};
  LogLimit dropped_{5};
  std::uint64_t last_id_ = 0;
  All channels_;  // oldest first
  std::set<std::uint64_t> backlog_;
  std::map<std::uint64_t, Loss> losses_;  // of the channels that are lost
  Redialer redialer_;
};

}  // namespace beeline
