// SPDX-License-Identifier: Apache-2.0
//
// Dials the peers of lost channels again. All addresses that the peer has named are dialed at the
// same time, and RESUME goes over the first connection. If none of them brings an answer, it tries
// again after a pause, for as long as its owner wants.
// Threads: the control thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plugin/connect/channel/channel.h"
#include "plugin/connect/socket/poller.h"

namespace beeline {

class Channels;

class Redialer {
 public:
  Redialer(Poller& poller, const ProcessName& self, Channels& channels)
      : poller_(&poller), self_(&self), channels_(&channels) {}
  Redialer(const Redialer&) = delete;
  Redialer& operator=(const Redialer&) = delete;
  ~Redialer();

  // The channel does not end before cancel().
  void start(Channel& channel);
  void cancel(std::uint64_t channel);
  // RESUME has been sent, so that the peer may accept it at any moment.
  bool has_introduced(std::uint64_t channel) const;

 private:
  enum class State : std::uint8_t { kConnecting, kIntroduced, kOver };
  struct Try {
    State state = State::kOver;
    wire::SocketAddress address;
    UniqueFd fd;
    Poller::Key key = 0;
    wire::FrameSplitter input;
  };
  struct Redial {
    Channel* channel = nullptr;
    std::uint64_t round = 0;     // timers and events of earlier rounds are ignored
    std::vector<Try> tries;      // one for each address
    bool is_refused = false;     // by one address at least: nothing listens there
    bool has_connected = false;  // to one address at least
    bool has_answered = false;
    std::int64_t pause_ns = 0;
    std::string last_error;
  };
  using Redials = std::map<std::uint64_t, Redial>;  // by channel

  void begin_round(std::uint64_t channel);
  void on_event(std::uint64_t channel, std::uint64_t round, std::size_t index);
  void on_connected(Redial& redial, std::size_t index);
  // Returns false if the redial is over.
  bool on_answer(Redial& redial, std::size_t index);
  bool on_refuse(Redial& redial, Try& one, const wire::Refuse& refusal);
  void on_ack(Redial& redial, Try& one, const wire::ResumeAck& ack);
  void give_up(Redial& redial, const Try& one, const std::string& why);
  void fail_try(Redial& redial, Try& one, const std::string& why);
  void hang_up(Try& one) noexcept;
  // Ends the tries of this round that are still in this state.
  void time_out(std::uint64_t channel, std::uint64_t round, State state);
  void end_round_if_over(std::uint64_t channel);
  void schedule(const Redial& redial, std::int64_t ns, State state);

  Poller* poller_;
  const ProcessName* self_;
  Channels* channels_;
  std::uint64_t last_round_ = 0;
  Redials redials_;
};

}  // namespace beeline
