// SPDX-License-Identifier: Apache-2.0
//
// The TCP connections that have come in and not introduced themselves yet. A peer becomes a channel
// when it sends a HELLO with the token of an open listener, and goes on with a channel that was
// lost when it sends a RESUME with that channel's token. Anybody else is dropped, and costs no more
// than a few bytes, a descriptor while some are free, and now and then a line in the log. Threads:
// the control thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/log.h"
#include "common/base/problem.h"
#include "plugin/connect/channel/channels.h"
#include "plugin/connect/socket/poller.h"

namespace beeline {

class InboundHandshakes {
 public:
  InboundHandshakes(Poller& poller, const ProcessName& self, std::chrono::milliseconds timeout,
                    Channels& channels, ChannelEvents& events)
      : poller_(&poller), self_(&self), timeout_(timeout), channels_(&channels), events_(&events) {}
  InboundHandshakes(const InboundHandshakes&) = delete;
  InboundHandshakes& operator=(const InboundHandshakes&) = delete;
  ~InboundHandshakes();

  // May be called several times.
  Status listen_on(UniqueFd listening);
  // Of the listening sockets.
  std::vector<wire::SocketAddress> addresses() const;

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
  struct Listening {
    UniqueFd fd;
    Poller::Key key = 0;
    wire::SocketAddress address;
  };
  using Introduction = std::variant<wire::Hello, wire::Resume>;

  void accept_waiting(const Listening& listening);
  void on_accept_failure(const Listening& listening, const Error& error);
  void add(UniqueFd fd);
  void schedule_timeout();
  void on_event(std::uint64_t id);
  // Empty until the whole message has arrived. An error ends the handshake.
  Outcome<std::optional<Introduction>> read_introduction(InboundHandshake& handshake);
  // Answers with REFUSE if the versions do not fit.
  static Outcome<void> check_versions(int fd, wire::ByteView body);
  void on_hello(std::uint64_t id, const wire::Hello& hello);
  void on_resume(std::uint64_t id, const wire::Resume& resume);
  // Takes the connection out of the handshakes.
  NewStream release(std::uint64_t id);
  // Logs the reason.
  void drop(std::uint64_t id, const std::string& why);
  void close(std::uint64_t id);
  void erase(Handshakes::iterator handshake);

  Poller* poller_;
  const ProcessName* self_;
  std::chrono::milliseconds timeout_;
  Channels* channels_;
  ChannelEvents* events_;
  std::vector<std::unique_ptr<Listening>> listening_;
  LogLimit dropped_{kLoggedAtFirst};
  LogLimit refused_{kLoggedAtFirst};
  LogLimit silent_{kLoggedAtFirst};
  std::uint64_t last_id_ = 0;
  Handshakes handshakes_;  // oldest first
  std::size_t limit_ = 0;  // of their number
  bool is_timer_set_ = false;
};

}  // namespace beeline
