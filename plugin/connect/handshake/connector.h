// SPDX-License-Identifier: Apache-2.0
//
// The connecting side of the handshake:
//
//   kNeedChannel --channel--> kAwaitAccept --ACCEPT--> kConnecting --RTS, READY--> delivered
//        ^                         |
//        +---- channel ended ------+    (the peer had closed it before it saw our CONNECT)
//
// kConnecting is a walk through the states of our own queue pair, or a call (cm_call.h) where the
// connection manager does it. Every state ends when the other end has been
// silent for too long (patience.h).
// Threads: the control thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "plugin/connect/channel/dialer.h"
#include "plugin/connect/cm/cm_call.h"
#include "plugin/connect/handshake/agreement.h"
#include "plugin/connect/handshake/control_context.h"
#include "plugin/connect/handshake/patience.h"

namespace beeline {

class Connector {
 public:
  Connector(ControlContext context, Dialer& dialer)
      : context_(std::move(context)), dialer_(&dialer) {}

  void start(AttemptOrder order);
  // Nobody waits for it any more. Who may have begun to make the other end hears of it.
  void abandon(std::uint32_t comm);
  bool is_empty() const noexcept { return attempts_.empty() && abandoned_.empty(); }
  bool uses(const Channel& channel) const noexcept;

  // --- what the dialer wants to know, and tells ---
  std::optional<Invitation> invitation(const wire::ProcessId& process) const;
  void on_not_invited(std::uint32_t comm, const std::string& text);
  void on_no_way(const wire::ProcessId& process, const Error& error, const std::string& text);

  // --- what happens to channels ---
  void on_channel(const Channel& channel);
  void on_channel_end(const Channel& channel, const std::string& cause);
  Status on_accept(Channel& channel, wire::Accept accept);
  // False: it is about something else.
  bool on_reject(const Channel& channel, const wire::Reject& reject);

 private:
  enum class State : std::uint8_t { kNeedChannel, kAwaitAccept, kConnecting };
  struct Attempt {
    AttemptOrder order;
    QpOptions qp = {};
    Patience patience = {};
    State state = State::kNeedChannel;
    std::uint64_t channel = 0;  // its id, once there is one
    int lost_channels = 0;
    std::optional<Endpoint> endpoint = {};
    wire::Accept accept = {};
    Route route = {};
    std::shared_ptr<CmDial> dial = {};  // before it the endpoint that it connects
  };
  using Attempts = std::map<std::uint32_t, Attempt>;

  // One for each state.
  void need_channel(std::uint32_t comm);
  void offer(Attempt& attempt, Channel& channel);
  void connect(std::uint32_t comm);
  void dial_cm(std::uint32_t comm, Attempt& attempt);

  Result<wire::Connect> make_offer_message(Attempt& attempt);
  Result<void, std::string> offer_cm(const Attempt& attempt, wire::PathOffer& path);
  Result<void, std::string> take_accept(Attempt& attempt);
  void deliver(Attempt& attempt, Channel& channel);
  Attempt* find(const Channel& channel, std::uint32_t comm);
  static void refuse_accept(Channel& channel, std::uint32_t their_comm);
  bool forget_abandoned(const Channel& channel, std::uint32_t comm);
  void watch_patience(std::uint32_t comm, std::int64_t left_ns);
  void on_silence(std::uint32_t comm);
  // The attempt is gone afterwards.
  void fail_attempt(std::uint32_t comm, const Error& error, const std::string& text);

  ControlContext context_;
  Dialer* dialer_;
  Attempts attempts_;  // by our number of the comm
  // Whose CONNECT is out: by their number, the channel on which the answer will come.
  std::map<std::uint32_t, std::uint64_t> abandoned_;
};

}  // namespace beeline
