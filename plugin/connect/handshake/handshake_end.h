// SPDX-License-Identifier: Apache-2.0
//
// The work that the connecting and the accepting end of a handshake have in common: they keep the
// comms that are being made, watch their timeouts, connect their paths, leave out the paths that
// fail, and build the finished connection.
// Threads: the control thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/check/assert.h"
#include "plugin/connect/channel/channels.h"
#include "plugin/connect/channel/identity.h"
#include "plugin/connect/cm/cm_hub.h"
#include "plugin/connect/comm/control_mailbox.h"
#include "plugin/connect/handshake/control_options.h"
#include "plugin/connect/handshake/path_remaker.h"
#include "plugin/connect/handshake/pending_comm.h"
#include "plugin/connect/path/port_watch.h"
#include "plugin/connect/socket/poller.h"

namespace beeline {

// The objects that the parts of the control thread share. Each outlives the parts that use it.
struct ControlContext {
  const ControlOptions* options = nullptr;
  const ProcessName* self = nullptr;
  std::shared_ptr<ControlMailbox> mailbox;
  Poller* poller = nullptr;
  PortWatch* ports = nullptr;
  Channels* channels = nullptr;
  CmHub* cm = nullptr;
  PathRemaker* remaker = nullptr;
};

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
  virtual void fail_comm(std::uint32_t comm, const HandshakeFailure& failure) = 0;
  virtual void on_timeout(std::uint32_t comm) = 0;
  // Goes on as far as the connected paths allow. Called when a path has become connected.
  virtual void advance(std::uint32_t comm) = 0;
  // The other end has begun to use the paths, so that none can be left out any more.
  virtual bool is_peer_using(const Pending& pending) const = 0;

  Pending& add(std::uint32_t comm, Pending pending) {
    BL_ASSERT(!comms_.contains(comm), "each comm has a number of its own");
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

  // The comm goes on without the path. If that is not possible it fails, and the result is false.
  bool leave_out(std::uint32_t comm, std::uint8_t path, HandshakeFailure why) {
    Pending& pending = comms_.at(comm);
    if (is_peer_using(pending)) {
      fail_comm(comm, pending.lost_path(path, why));
      return false;
    }
    pending.leave_out(path, std::move(why));
    if (pending.has_paths()) return true;
    fail_comm(comm, pending.no_path_left());
    return false;
  }

  // Connects the paths that the connection manager does not connect.
  void connect_paths(std::uint32_t comm) {
    const auto found = comms_.find(comm);
    if (found == comms_.end()) return;  // it has ended while an address was being resolved
    Pending& pending = found->second;
    bool is_unresolved = false;
    for (const std::uint8_t number : pending.path_numbers()) {
      PathSetup& path = pending.end->paths().at(number);
      if (path.is_connected() || pending.cm.contains(number)) continue;
      const Status connected = path.connect(pending.qp);
      if (connected) {
        note_connected(comm);
      } else if (connected.error().code == Errc::kTimeout) {
        is_unresolved = true;
      } else if (!leave_out(comm, number,
                            {.text = port_text(path.device()) + ": " + describe(connected.error()),
                             .error = connected.error()})) {
        return;
      }
    }
    if (!is_unresolved) return advance(comm);
    context_.poller->at(now_ns() + PathSetup::kResolveAgainNs,
                        [this, comm] { connect_paths(comm); });
  }

  // For a path that the connection manager connects. The comm is there, because it owns the setup
  // that calls this.
  CmSetup::Done on_cm_done(std::uint32_t comm, std::uint8_t path) {
    return [this, comm, path](const Outcome<void>& outcome) {
      if (outcome) {
        note_connected(comm);
        return advance(comm);
      }
      const Error error = fail(Errc::kSystem, "connect a queue pair with librdmacm").error;
      if (leave_out(comm, path, {.text = outcome.error().text, .error = error})) advance(comm);
    };
  }

  // Takes the end out of the comm, and logs which of its paths are connected. Those that are
  // missing are made later, if the ends can agree on that.
  MadeConnection make_linked(std::uint32_t comm, std::uint32_t peer_comm, Channel& channel,
                             Role role, const wire::Window& peer_window) {
    Pending& pending = comms_.at(comm);
    MadeConnection made = make_connection(pending, role, peer_window);
    for (const auto& [number, why] : pending.missing) {
      if (channel.resume() != nullptr)
        add_missing_path(*made, pending.layout.place(number), pending.device_of(number));
    }
    made->link = channel.make_link(comm, peer_comm, made->paths, context_.mailbox);
    if (made->link->exchanges_reports())
      context_.remaker->remember(comm, *made, pending.qp, channel.peer().host);
    const std::string missing = pending.missing_text();
    BL_INFO(kLogNet, "%s%s%s", connection_text(*made).c_str(),
            missing.empty() ? "" : "; these paths are missing: ", missing.c_str());
    if (!missing.empty()) made->link->tell({.kind = PathNews::Kind::kMissing, .place = missing});
    return made;
  }

  ControlContext context_;
  std::map<std::uint32_t, Pending> comms_;  // by this process's number of the comm

 private:
  // Once one path is connected, the others have this long to resolve the address of their peer.
  static constexpr std::int64_t kResolveNs = 2 * kNsPerSec;
  static constexpr std::int64_t kForever = INT64_MAX;
  static constexpr const char* kLateText = "in time, though another path is connected";

  void note_connected(std::uint32_t comm) {
    Pending& pending = comms_.at(comm);
    if (pending.first_connected_ns >= 0 || pending.has_one_path()) return;
    pending.first_connected_ns = context_.poller->waited_ns();
    context_.poller->at(now_ns() + kResolveNs, [this, comm] { leave_out_late_paths(comm); });
  }

  // How long a path may take once another one is connected.
  std::int64_t patience_ns(const Pending& pending, std::uint8_t path) const {
    const auto setup = pending.cm.find(path);
    if (setup == pending.cm.end() || setup->second->is_resolving()) return kResolveNs;
    if (setup->second->is_waiting_for_request()) return kForever;
    return context_.options->connect_timeout.count() * kNsPerMs / 2;
  }

  // Only time in which this thread was waiting counts, as in HandshakeTimeout.
  void leave_out_late_paths(std::uint32_t comm) {
    const auto found = comms_.find(comm);
    if (found == comms_.end()) return;
    Pending& pending = found->second;
    const std::int64_t waited = context_.poller->waited_ns() - pending.first_connected_ns;
    std::int64_t next = kForever;
    for (const std::uint8_t number : pending.path_numbers()) {
      if (pending.end->paths().at(number).is_connected()) continue;
      const std::int64_t patience = patience_ns(pending, number);
      if (patience > waited) {
        if (patience != kForever) next = std::min(next, patience - waited);
        continue;
      }
      const std::string text = connecting_timeout_text(pending, number, kLateText);
      const Error error = fail(Errc::kTimeout, "connect a path").error;
      if (!leave_out(comm, number, {.text = text, .error = error})) return;
    }
    if (next != kForever) {
      context_.poller->at(now_ns() + next, [this, comm] { leave_out_late_paths(comm); });
    }
    advance(comm);
  }

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
