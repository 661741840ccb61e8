// SPDX-License-Identifier: Apache-2.0
//
// The TCP connections that have come in and not introduced themselves yet. A peer becomes a channel
// when it sends a HELLO with the token of an open listener. Anybody else is dropped, and costs no
// more than a few bytes, a descriptor while some are free, and now and then a line in the log.
// Threads: the control thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/log.h"
#include "common/base/problem.h"
#include "plugin/connect/channel/channel_events.h"
#include "plugin/connect/socket/poller.h"

namespace beeline {

class InboundHandshakes {
 public:
  InboundHandshakes(Poller& poller, const ProcessName& self, std::chrono::milliseconds timeout,
                    ChannelEvents& events)
      : poller_(&poller), self_(&self), timeout_(timeout), events_(&events) {}
  InboundHandshakes(const InboundHandshakes&) = delete;
  InboundHandshakes& operator=(const InboundHandshakes&) = delete;
  ~InboundHandshakes();

  Status listen_on(UniqueFd listening);

 private:
  // Log lines are limited, because any host that reaches the port can cause them.
  static constexpr std::uint64_t kLoggedAtFirst = 5;

  struct InboundHandshake {
    UniqueFd fd;
    Poller::Key key = 0;
    std::int64_t deadline_ns = 0;
    wire::FrameSplitter input;
    bool has_received = false;
  };
  using Handshakes = std::map<std::uint64_t, InboundHandshake>;

  void accept_waiting();
  void on_accept_failure(const Error& error);
  void add(UniqueFd fd);
  void schedule_timeout();
  void on_event(std::uint64_t id);
  // Empty until the whole message has arrived. An error ends the handshake.
  Outcome<std::optional<wire::Hello>> read_hello(InboundHandshake& handshake);
  void on_hello(std::uint64_t id, const wire::Hello& hello);
  // Logs the reason.
  void drop(std::uint64_t id, const std::string& why);
  void close(std::uint64_t id);
  void erase(Handshakes::iterator handshake);

  Poller* poller_;
  const ProcessName* self_;
  std::chrono::milliseconds timeout_;
  ChannelEvents* events_;
  UniqueFd listening_;
  Poller::Key listening_key_ = 0;
  LogLimit dropped_{kLoggedAtFirst};
  LogLimit refused_{kLoggedAtFirst};
  LogLimit silent_{kLoggedAtFirst};
  std::uint64_t last_id_ = 0;
  Handshakes handshakes_;  // oldest first
  std::size_t limit_ = 0;  // of their number
  bool is_timer_set_ = false;
};

}  // namespace beeline
