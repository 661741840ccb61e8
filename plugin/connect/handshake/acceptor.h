// SPDX-License-Identifier: Apache-2.0
//
// The accepting end of the handshake:
//
//   CONNECT --> kConnecting --RTS, ACCEPT--> kAwaitReady --READY--> delivered to the listener
//
// If the connection manager connects a queue pair (cm_setup.h), ACCEPT is sent before that is done,
// and only the delivery waits for it.
//
// A path that cannot be made is left out: by this end in ACCEPT, by the connecting end in READY.
// A comm fails if no path is left. It also fails if this end loses a path that READY names: the
// connecting end uses it already.
//
// A failure is reported to the peer and to the log, and accept() returns it: NCCL gives the handle
// of a listener to one process, which will not connect again. After the end of its channel it
// may, so accept() waits for as long as a handshake may take. Whoever does not know the listener's
// token fails nothing.
// Threads: the control thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "plugin/connect/handshake/cm_agreement.h"
#include "plugin/connect/handshake/handshake_end.h"

namespace beeline {

enum class AcceptState : std::uint8_t { kConnecting, kAwaitReady };

struct PendingAccept : PendingComm {
  std::string peer_host;
  AcceptState state = AcceptState::kConnecting;
  wire::Connect connect;
  std::map<std::uint8_t, wire::PathAnswer> answers;  // by path
  std::vector<std::uint8_t> accepted;                // the paths that ACCEPT names
  FlowLabels flow_labels;                            // of path 0
  bool is_peer_ready = false;
};

class Acceptor final : public HandshakeEnd<PendingAccept> {
 public:
  explicit Acceptor(ControlContext context) : HandshakeEnd(std::move(context)) {}

  bool is_empty() const noexcept { return comms_.empty(); }
  // Whether this comm is being made on the channel.
  bool is_making(const Channel& channel, std::uint32_t comm) {
    return find(channel, comm) != nullptr;
  }

  void on_connect(Channel& channel, wire::Connect connect);
  void on_ready(const Channel& channel, const wire::Ready& ready);
  // False: the message is not about a comm of this object.
  bool on_reject(const Channel& channel, const wire::Reject& reject);
  void on_channel_end(const Channel& channel, const std::string& cause);
  void on_closed(const std::vector<std::uint32_t>& listeners);

 private:
  static Error accept_error(Errc code) { return fail(code, "accept").error; }
  Checked check(const PendingAccept& pending) const;
  Checked check_limits(const PendingAccept& pending, std::size_t unaccepted) const;
  // Refuses the oldest if too many wait at the listener.
  void limit_waiting(std::uint32_t listener);
  Checked make(std::uint32_t comm, PendingAccept& pending);
  Checked make_path(std::uint32_t comm, PendingAccept& pending, const RailPorts& ports,
                    const wire::PathOffer& offer);
  // For a path that the connection manager connects. Sets the answer's `cm`.
  Outcome<void> listen_with_cm(std::uint32_t comm, PendingAccept& pending,
                               const wire::PathOffer& offer);
  static void leave_out_for_peer(PendingAccept& pending, const wire::MissingPath& path);
  // Leaves out what the connecting end has not connected.
  static Checked take_ready(PendingAccept& pending, const wire::Ready& ready);
  void advance(std::uint32_t comm) override;
  bool is_peer_using(const PendingAccept& pending) const override { return pending.is_peer_ready; }
  void send_accept(std::uint32_t comm, PendingAccept& pending, const Channel& channel);
  void deliver(std::uint32_t comm, Channel& channel);
  void on_timeout(std::uint32_t comm) override;
  // The comm is gone after each of these. fail_comm() logs the reason, tells it to the peer and
  // ends accept(). refuse() does only the first two, drop() only the first, and abandon() is for a
  // closed listener.
  void fail_comm(std::uint32_t comm, const HandshakeFailure& failure) override;
  void refuse(std::uint32_t comm, const HandshakeFailure& failure);
  void drop(std::uint32_t comm, const std::string& why);
  void abandon(std::uint32_t comm);
  void forget(std::uint32_t comm);
  void forget_earlier(const Channel& channel, std::uint32_t peer_comm);
  void warn(const PendingAccept& pending, const std::string& why);

  std::map<std::uint32_t, std::set<std::uint32_t>> at_listener_;  // comms by listener, oldest first
  std::map<std::uint32_t, std::uint32_t>
      lost_;  // by listener: the comm whose channel has ended last
  LogLimit failures_{20};
};

}  // namespace beeline
