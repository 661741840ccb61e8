// SPDX-License-Identifier: Apache-2.0
//
// Who has dialed us and not introduced himself yet. Only who brings a HELLO with an invitation that
// is still good becomes a channel; anybody else is dropped, and costs no more than a few bytes, a
// descriptor while there are some to spare, and a line in the log now and then.
// Threads: the control thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/log.h"
#include "plugin/connect/channel/channel_events.h"
#include "plugin/connect/socket/poller.h"

namespace beeline {

class InboundHandshakes {
 public:
  InboundHandshakes(Poller& poller, const ProcessName& self, std::chrono::milliseconds patience,
                    ChannelEvents& events)
      : poller_(&poller), self_(&self), patience_(patience), events_(&events) {}
  InboundHandshakes(const InboundHandshakes&) = delete;
  InboundHandshakes& operator=(const InboundHandshakes&) = delete;
  ~InboundHandshakes();

  Status listen_on(UniqueFd listening);

 private:
  // Anybody can dial: the log must not be theirs.
  static constexpr std::uint64_t kLoggedAtFirst = 5;

  struct InboundHandshake {
    UniqueFd fd;
    Poller::Key key = 0;
    std::int64_t deadline_ns = 0;
    wire::FrameSplitter input;
    bool has_spoken = false;
  };

  void accept_waiting();
  void on_accept_failure(const Error& error);
  void admit(UniqueFd fd);
  void watch_clock();
  void on_event(std::uint64_t id);
  // Nothing: not all of it has come. An error, in words, is the end of the handshake.
  Result<std::optional<wire::Hello>, std::string> read_hello(InboundHandshake& handshake);
  void introduce(std::uint64_t id, const wire::Hello& hello);
  void drop(std::uint64_t id, const std::string& why);
  void forget(std::uint64_t id);
  void erase(std::map<std::uint64_t, InboundHandshake>::iterator handshake);

  Poller* poller_;
  const ProcessName* self_;
  std::chrono::milliseconds patience_;
  ChannelEvents* events_;
  UniqueFd listening_;
  Poller::Key listening_key_ = 0;
  LogLimit dropped_{kLoggedAtFirst};
  LogLimit refused_{kLoggedAtFirst};
  LogLimit silent_{kLoggedAtFirst};
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, InboundHandshake> handshakes_;  // by age
  std::size_t most_ = 0;                                  // of them
  bool clock_is_watched_ = false;
};

}  // namespace beeline
