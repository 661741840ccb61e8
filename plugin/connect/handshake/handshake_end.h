// SPDX-License-Identifier: Apache-2.0
//
// The work that the connecting and the accepting end of a handshake have in common: they keep the
// comms that are being made, watch their timeouts, make and connect their paths, and build the
// finished connection.
// Threads: the control thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "plugin/connect/cm/cm_setup.h"
#include "plugin/connect/handshake/agreement.h"
#include "plugin/connect/handshake/control_context.h"
#include "plugin/connect/handshake/handshake_timeout.h"
#include "plugin/connect/path/comm_end.h"

namespace beeline {

// One comm that is being made.
struct PendingComm {
  RailDevices devices;
  QpOptions qp;
  std::string peer;  // "h1 mlx5_0 port 1"
  HandshakeTimeout timeout;
  std::uint64_t channel = 0;  // its id; 0: none yet
  std::optional<CommEnd> end;
  // By rail; null where the plugin itself moves the queue pair. After `end`, whose paths they use.
  std::vector<std::shared_ptr<CmSetup>> cm;

  std::string own_name() const;  // "h0 mlx5_0 port 1"
  // All paths that the connection manager does not connect are connected.
  bool has_connected_directly() const noexcept;
};

// The memory of the comm and the queues of all its paths.
Status make_end(PendingComm& comm, const CommPlan& plan, PortWatch& ports);
// Takes the end out of the comm. The connection has no link yet.
MadeConnection make_connection(PendingComm& comm, Role role, const wire::Window& peer_window);
// For a timeout while paths are being connected. `limit`: "within 60 s".
std::string connecting_timeout_text(const PendingComm& comm, const std::string& limit);
std::string timeout_limit_text(const ControlOptions& options);  // "within 60 s"

// `Pending` is derived from PendingComm.
template <class Pending>
class HandshakeEnd {
 public:
  HandshakeEnd(const HandshakeEnd&) = delete;
  HandshakeEnd& operator=(const HandshakeEnd&) = delete;

  bool is_using(const Channel& channel) const noexcept {
    return std::ranges::any_of(
        comms_, [&](const auto& entry) { return entry.second.channel == channel.id(); });
  }

 protected:
  explicit HandshakeEnd(ControlContext context) : context_(std::move(context)) {}
  ~HandshakeEnd() = default;

  // The comm is in comms_ before each of these calls. fail_comm() removes it.
  virtual void fail_comm(std::uint32_t comm, const Error& error, const std::string& text) = 0;
  virtual void on_timeout(std::uint32_t comm) = 0;
  // Goes on as far as the connected paths allow. Called when a path has become connected.
  virtual void advance(std::uint32_t comm) = 0;

  Pending& add(std::uint32_t comm, Pending pending) {
    pending.timeout = HandshakeTimeout(*context_.poller, context_.options->connect_timeout);
    watch_timeout(comm, pending.timeout.left_ns(*context_.poller, 0));
    return comms_.emplace(comm, std::move(pending)).first->second;
  }

  // Null: no such comm, or not on this channel.
  Pending* find(const Channel& channel, std::uint32_t comm) {
    const auto found = comms_.find(comm);
    if (found == comms_.end() || found->second.channel != channel.id()) return nullptr;
    return &found->second;
  }

  std::vector<std::uint32_t> comms_on(const Channel& channel) const {
    std::vector<std::uint32_t> comms;
    for (const auto& [comm, pending] : comms_) {
      if (pending.channel == channel.id()) comms.push_back(comm);
    }
    return comms;
  }

  // Null while the comm waits for a channel, and during the end of its channel.
  Channel* channel_of(const Pending& pending) const {
    return context_.channels->find(pending.channel);
  }

  // Connects the paths that the connection manager does not connect.
  void connect_paths(std::uint32_t comm) {
    const auto found = comms_.find(comm);
    if (found == comms_.end()) return;  // it has ended while an address was being resolved
    Pending& pending = found->second;
    bool is_unresolved = false;
    for (std::size_t rail = 0; rail < pending.cm.size(); ++rail) {
      PathSetup& path = pending.end->paths()[rail];
      if (path.is_connected() || pending.cm[rail] != nullptr) continue;
      const Status connected = path.connect(pending.qp);
      if (connected) continue;
      if (connected.error().code != Errc::kTimeout) {
        return fail_comm(comm, connected.error(),
                         pending.own_name() + ": " + describe(connected.error()));
      }
      is_unresolved = true;
    }
    if (!is_unresolved) return advance(comm);
    context_.poller->at(now_ns() + PathSetup::kResolveAgainNs,
                        [this, comm] { connect_paths(comm); });
  }

  // For a path that the connection manager connects. The comm is there, because it owns the setup
  // that calls this.
  CmSetup::Done on_cm_done(std::uint32_t comm) {
    return [this, comm](const Outcome<void>& outcome) {
      if (outcome) return advance(comm);
      fail_comm(comm, fail(Errc::kSystem, "connect a queue pair with librdmacm").error,
                outcome.error().text);
    };
  }

  MadeConnection make_linked(std::uint32_t comm, std::uint32_t peer_comm, Channel& channel,
                             Role role, const wire::Window& peer_window) {
    MadeConnection made = make_connection(comms_.at(comm), role, peer_window);
    // The link ends the comm when the device of this path is removed.
    const PathResources& path = made->paths.front();
    made->link = channel.make_link(comm, peer_comm, path, context_.mailbox);
    return made;
  }

  ControlContext context_;
  std::map<std::uint32_t, Pending> comms_;  // by this process's number of the comm

 private:
  void watch_timeout(std::uint32_t comm, std::int64_t left_ns) {
    context_.poller->at(now_ns() + left_ns, [this, comm] { check_timeout(comm); });
  }

  void check_timeout(std::uint32_t comm) {
    const auto found = comms_.find(comm);
    if (found == comms_.end()) return;
    const Channel* const channel = channel_of(found->second);
    const std::int64_t left = found->second.timeout.left_ns(
        *context_.poller, channel == nullptr ? 0 : channel->progress_ns());
    if (left > 0) return watch_timeout(comm, left);
    on_timeout(comm);
  }
};

}  // namespace beeline
