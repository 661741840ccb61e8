// SPDX-License-Identifier: Apache-2.0
//
// The accepting side of the handshake:
//
//   CONNECT --> kConnecting --RTS, ACCEPT--> kAwaitReady --READY--> delivered to the listener
//
// Where the connection manager connects the queue pairs (cm_call.h), ACCEPT goes out at once, and
// READY counts when that is done, too.
//
// What fails here is told to the peer and to the log. accept() hears of it only when it is this
// host's own failure: whoever holds the listener's token is the peer that accept() waits for, and
// it has got an error too. A peer that times out, dies or does not fit is not our caller's error.
// Threads: the control thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "plugin/connect/cm/cm_call.h"
#include "plugin/connect/handshake/agreement.h"
#include "plugin/connect/handshake/control_context.h"
#include "plugin/connect/handshake/patience.h"

namespace beeline {

class Acceptor {
 public:
  explicit Acceptor(ControlContext context) : context_(std::move(context)) {}

  bool is_empty() const noexcept { return admissions_.empty(); }
  bool uses(const Channel& channel) const noexcept;

  void on_connect(Channel& channel, wire::Connect connect);
  void on_ready(Channel& channel, const wire::Ready& ready);
  // False: it is about something else.
  bool on_reject(const Channel& channel, const wire::Reject& reject);
  void on_channel_end(const Channel& channel, const std::string& cause);
  // Nobody will take what is made for these listeners.
  void on_closed(const std::vector<std::uint32_t>& listeners);

 private:
  enum class State : std::uint8_t { kConnecting, kAwaitReady };
  struct Admission {
    State state = State::kConnecting;
    Patience patience;
    std::uint64_t channel = 0;
    std::string peer_host;
    const Device* device = nullptr;
    QpOptions qp;
    wire::Connect connect;
    Agreement agreement;
    std::optional<Endpoint> endpoint;
    std::shared_ptr<CmAnswer> answer;  // before it the endpoint that it connects
    bool is_connected = false;
    bool is_ready = false;  // the peer
  };

  // What to tell the peer.
  struct Refusal {
    wire::RejectCode code;
    std::string text;
    Error error;
  };
  using Checked = Result<void, Refusal>;

  Checked check(const Admission& admission) const;
  Checked check_limits(const Admission& admission, std::size_t unaccepted) const;
  // If there are too many, the oldest is refused.
  void make_room(std::uint32_t listener);
  Checked make(std::uint32_t comm, Admission& admission);
  Result<Agreement, std::string> come_to_terms(const PortSide& ours, const Admission& admission);
  Checked invite(std::uint32_t comm, Admission& admission);
  void on_cm_done(std::uint32_t comm, const Result<void, std::string>& outcome);
  void deliver(std::uint32_t comm, Channel& channel);
  void connect(std::uint32_t comm);
  void answer(std::uint32_t comm, Admission& admission);
  Admission* find(const Channel& channel, std::uint32_t comm);
  static std::string lateness(const Admission& admission);
  void watch_patience(std::uint32_t comm, std::int64_t left_ns);
  void on_silence(std::uint32_t comm);
  // The admission is gone afterwards.
  void refuse(std::uint32_t comm, const Refusal& refusal);
  void drop(std::uint32_t comm, const std::string& why);
  void abandon(std::uint32_t comm);
  void forget(std::uint32_t comm);
  void warn(const Admission& admission, const std::string& why);

  ControlContext context_;
  std::map<std::uint32_t, Admission> admissions_;                 // by our number of the comm
  std::map<std::uint32_t, std::set<std::uint32_t>> at_listener_;  // their numbers, oldest first
  LogLimit failures_{20};
};

}  // namespace beeline
