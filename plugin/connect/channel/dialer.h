// SPDX-License-Identifier: Apache-2.0
//
// Opens TCP connections to other processes and introduces this one. There is one dial for each
// process, however many connects wait for its channel. A dial is retried for as long as a connect
// waits; each attempt names the listener of one of them.
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

  // Does nothing if a dial to this process is in progress.
  void dial(const wire::ProcessId& process);
  // HELLO has been sent, so that the peer may accept it at any moment.
  bool has_introduced(const wire::ProcessId& process) const;
  // The address and its last error, for log lines: "10.0.0.2:4711: no answer".
  std::string last_error(const wire::ProcessId& process) const;
  void cancel(const wire::ProcessId& process);

 private:
  enum class State : std::uint8_t {
    kConnecting,  // the socket is not connected yet
    kIntroduced,  // HELLO has been sent, and its answer is awaited
    kPaused,      // between two tries
  };
  struct Dial {
    State state = State::kPaused;
    std::uint64_t number = 0;  // of the current try; timers of earlier tries are ignored
    UniqueFd fd;
    Poller::Key key = 0;
    DialTarget target;
    std::optional<wire::ResumeOffer> offer;  // in HELLO
    wire::FrameSplitter input;
    std::int64_t hello_ns = 0;  // when HELLO was sent
    std::string last_error;
    std::int64_t first_failure_ns = 0;
    std::int64_t pause_ns = 0;
  };
  using Dials = std::map<wire::ProcessId, Dial>;

  void try_dial(Dials::iterator dial);
  void on_event(const wire::ProcessId& process, std::uint64_t number);
  // The next event or timer of each state.
  void on_connected(Dials::iterator dial);
  void on_answer(Dials::iterator dial);
  void on_timeout(Dials::iterator dial);

  Result<std::optional<wire::Frame>> read_answer(Dial& dial);
  void on_hello_ack(Dials::iterator dial, const wire::HelloAck& ack);
  void on_refuse(Dials::iterator dial, const wire::Refuse& refusal);
  // Tries again after a pause, unless the dial has failed for too long.
  void on_failure(Dials::iterator dial, const Error& error);
  void give_up(Dials::iterator dial, Error error, std::string text);
  void pause(Dials::iterator dial, std::int64_t ns);
  void hang_up(Dial& dial) noexcept;
  // Calls it after this time, unless the dial has ended or begun another try by then.
  void schedule(const Dials::iterator& dial, std::int64_t ns,
                void (Dialer::*call)(Dials::iterator));

  Poller* poller_;
  const ProcessName* self_;
  std::chrono::milliseconds answer_timeout_;
  ChannelEvents* events_;
  std::uint64_t last_number_ = 0;
  Dials dials_;
};

}  // namespace beeline
