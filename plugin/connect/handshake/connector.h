// SPDX-License-Identifier: Apache-2.0
//
// The connecting end of the handshake:
//
//   kNeedChannel --channel--> kAwaitAccept --ACCEPT--> kConnecting --RTS, READY--> delivered
//        ^                         |
//        +- channel ended or lost -+    (the peer may not have seen the CONNECT)
//
// A path that cannot be made is left out: before CONNECT, or before READY. The accepting end leaves
// out others in ACCEPT. A comm fails if no path is left.
//
// In kConnecting the queue pairs move to RTS, by the plugin itself or by the connection manager
// (cm_setup.h). Each state ends when the peer has been silent for too long (HandshakeTimeout).
// Threads: the control thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plugin/connect/channel/dialer.h"
#include "plugin/connect/handshake/handshake_end.h"

namespace beeline {

enum class ConnectState : std::uint8_t { kNeedChannel, kAwaitAccept, kConnecting };

struct PendingConnect : PendingComm {
  AttemptOrder order;
  ConnectState state = ConnectState::kNeedChannel;
  int lost_channels = 0;
  wire::Accept accept;
  StatsSlot slot;              // empty if nothing is shown
  std::int64_t called_ns = 0;  // when connect() is known to have been called last
};

class Connector final : public HandshakeEnd<PendingConnect> {
 public:
  Connector(ControlContext context, Dialer& dialer)
      : HandshakeEnd(std::move(context)), dialer_(&dialer) {}

  void start(AttemptOrder order);
  // The caller of connect() has given up. The peer is told if it may have begun to make its end.
  void abandon(std::uint32_t comm);
  bool is_empty() const noexcept { return comms_.empty() && abandoned_.empty(); }
  bool is_using(const Channel& channel) const noexcept;

  // Called about once a second: a connect() that is not called any more waits for nothing.
  void look_at_calls(std::int64_t now_ns);

  // --- for the dialer ---
  // Empty if no connect waits for a channel to this process any more.
  std::optional<DialTarget> dial_target(const wire::ProcessId& process) const;
  void on_unknown_listener(std::uint32_t comm, const std::string& text);
  void on_dial_failed(const wire::ProcessId& process, const Error& error, const std::string& text);

  // --- events of channels ---
  // The connects that wait for a channel to this process. Once there is one, resume() makes their
  // queue pairs, which may take milliseconds for each.
  std::vector<std::uint32_t> waiting_for(const wire::ProcessId& process) const;
  // Returns false if the connect has not started, or is over.
  bool resume(std::uint32_t comm);
  void on_channel_lost(const Channel& channel, const std::string& cause);
  void on_channel_end(const Channel& channel, const std::string& cause);
  Status on_accept(Channel& channel, wire::Accept accept);
  // False: the message is not about a comm of this object.
  bool on_reject(const Channel& channel, const wire::Reject& reject);

 private:
  StatsSlot slot_of(const AttemptOrder& order) const;
  void need_channel(std::uint32_t comm);
  void send_connect(std::uint32_t comm, PendingConnect& pending, Channel& channel);
  // The memory and the paths of the comm. Fails only if there is no memory.
  Checked make_end(PendingConnect& pending);
  wire::Connect make_connect(PendingConnect& pending);
  Checked add_offer(PendingConnect& pending, std::uint8_t number, wire::Connect& message);
  // Fails if the peer has broken the protocol. Paths that are impossible are left out.
  Outcome<void> take_accept(PendingConnect& pending);
  Outcome<void> take_answer(PendingConnect& pending, const wire::PathAnswer& answer);
  // The peer's answer does not fit.
  static HandshakeFailure misfit(const PendingComm& comm, const std::string& why);
  void connect_with_cm(std::uint32_t comm);
  void advance(std::uint32_t comm) override;
  bool is_peer_using(const PendingConnect&) const override { return false; }
  void deliver(std::uint32_t comm, Channel& channel);
  static void reject_accept(Channel& channel, std::uint32_t peer_comm);
  bool forget_abandoned(const Channel& channel, std::uint32_t comm);
  void on_timeout(std::uint32_t comm) override;
  // Its channel is of no use any more. The comm sends another CONNECT, or fails.
  void connect_again(std::uint32_t comm, const std::string& cause);
  void fail_comm(std::uint32_t comm, const HandshakeFailure& failure) override;

  Dialer* dialer_;
  // Comms that were abandoned in kAwaitAccept: by number, the channel on which the answer is due.
  std::map<std::uint32_t, std::uint64_t> abandoned_;
};

}  // namespace beeline
