// SPDX-License-Identifier: Apache-2.0
//
// Dialing other processes: one dial for each, however many connects wait for it. A dial goes on as
// long as somebody wants it; every try asks for an invitation to show.
// Threads: the control thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "plugin/connect/channel/channel_events.h"
#include "plugin/connect/socket/poller.h"

namespace beeline {

class Dialer {
 public:
  Dialer(Poller& poller, const ProcessName& self, std::chrono::milliseconds answer_timeout,
         ChannelEvents& events)
      : poller_(&poller), self_(&self), answer_timeout_(answer_timeout), events_(&events) {}
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;
  ~Dialer();

  // Does nothing while a dial to that process is under way.
  void dial(const wire::ProcessId& process);
  // Our introduction is out: the peer may take it at any moment.
  bool has_introduced(const wire::ProcessId& process) const;
  // What stands in the way, for people: "10.0.0.2:4711: no answer".
  std::string trouble(const wire::ProcessId& process) const;
  void cancel(const wire::ProcessId& process);

 private:
  enum class State : std::uint8_t {
    kConnecting,  // until the socket is connected
    kIntroduced,  // HELLO is sent; the answer decides
    kPaused,      // between two tries
  };
  struct Dial {
    State state = State::kPaused;
    std::uint64_t number = 0;  // of the try; a timer of an earlier one means nothing
    UniqueFd fd;
    Poller::Key key = 0;
    Invitation invitation;
    wire::FrameSplitter input;
    std::string trouble;  // of the last try
    std::int64_t first_failure_ns = 0;
    std::int64_t pause_ns = 0;
  };
  using Dials = std::map<wire::ProcessId, Dial>;

  // One for each state, told that it is time to go on.
  void try_dial(Dials::iterator dial);
  void on_connected(Dials::iterator dial);
  void on_answer(Dials::iterator dial);

  void on_event(const wire::ProcessId& process, std::uint64_t number);
  Result<std::optional<wire::Frame>> read_answer(Dial& dial);
  void welcome(Dials::iterator dial, const wire::HelloAck& ack);
  void refused(Dials::iterator dial, const wire::Refuse& refusal);
  // Tries again in a while, unless it has failed for too long.
  void failed(Dials::iterator dial, const Error& error);
  void give_up(Dials::iterator dial, Error error, std::string text);
  void pause(Dials::iterator dial, std::int64_t ns);
  void hang_up(Dial& dial) noexcept;
  // Calls it unless the dial has gone on by then.
  void later(const Dials::iterator& dial, std::int64_t ns, void (Dialer::*call)(Dials::iterator));
  void on_silence(Dials::iterator dial);

  Poller* poller_;
  const ProcessName* self_;
  std::chrono::milliseconds answer_timeout_;
  ChannelEvents* events_;
  std::uint64_t last_number_ = 0;
  Dials dials_;
};

}  // namespace beeline
