// SPDX-License-Identifier: Apache-2.0
//
// One comm that is being made, at either end: the paths that it still has, and those that it has
// lost on the way, with the reasons. A comm is made if one path is left.
// Threads: the control thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "plugin/connect/cm/cm_setup.h"
#include "plugin/connect/comm/control_mailbox.h"
#include "plugin/connect/handshake/control_options.h"
#include "plugin/connect/path/comm_end.h"
#include "plugin/connect/path/path_layout.h"
#include "plugin/connect/path/port_watch.h"
#include "plugin/connect/socket/poller.h"
#include "plugin/wire/message.h"

namespace beeline {

// Why a path cannot be made, or a comm.
struct HandshakeFailure {
  wire::RejectCode code = wire::RejectCode::kFailed;  // for the peer, if the comm fails
  std::string text;                                   // for the logs of both hosts
  Error error;                                        // for NCCL, if the comm fails
};
using Checked = Result<void, HandshakeFailure>;

// The timeout of one end of a handshake. It counts silence only. Time in which this process's
// control thread was busy does not count, because the answer may be in its queue. A message about
// any handshake on the same channel starts the count again, because it shows that the peer is
// working through its own queue.
class HandshakeTimeout {
 public:
  // The handshake ends after so many times the limit, however busy both ends are.
  static constexpr int kMaxTimes = 10;

  HandshakeTimeout() = default;
  HandshakeTimeout(const Poller& poller, std::chrono::milliseconds limit) noexcept
      : limit_ns_(limit.count() * kNsPerMs),
        began_ns_(now_ns()),
        waited_before_ns_(poller.waited_ns()) {}

  // The time that is left; 0 or less if the timeout has expired. `heard` is the poller's
  // waited_ns() when the peer's last message arrived.
  std::int64_t left_ns(const Poller& poller, std::int64_t heard) const noexcept {
    const std::int64_t silent = poller.waited_ns() - std::max(waited_before_ns_, heard);
    return std::min(limit_ns_ - silent, began_ns_ + kMaxTimes * limit_ns_ - now_ns());
  }

 private:
  std::int64_t limit_ns_ = 0;
  std::int64_t began_ns_ = 0;
  std::int64_t waited_before_ns_ = 0;
};

struct PendingComm {
  RailDevices devices;
  QpOptions qp;
  PathLayout layout;
  std::string peer;  // "h1 mlx5_0 port 1"
  HandshakeTimeout timeout;
  std::uint64_t channel = 0;  // its id; 0: none yet
  std::optional<CommEnd> end;
  // By path; those that the connection manager connects. After `end`, whose paths they use.
  std::map<std::uint8_t, std::shared_ptr<CmSetup>> cm;
  std::map<std::uint8_t, HandshakeFailure> missing;  // by path
  // Poller::waited_ns() when the first path was connected. Below 0: none is connected yet.
  std::int64_t first_connected_ns = -1;

  std::string own_name() const;  // "h0 mlx5_0 port 1", with all devices
  const Device& device_of(std::uint8_t path) const noexcept {
    return devices[layout.place(path).rail]->newest();
  }
  bool has_one_path() const noexcept { return layout.count == 1; }
  bool has_paths() const noexcept { return end.has_value() && !end->paths().empty(); }
  bool has_path(std::uint8_t path) const noexcept {
    return end.has_value() && end->paths().contains(path);
  }
  std::vector<std::uint8_t> path_numbers() const;  // those that are left
  // All paths that the connection manager does not connect are connected.
  bool has_connected_directly() const noexcept;

  // Destroys what there is of the path. The first reason counts.
  void leave_out(std::uint8_t path, const HandshakeFailure& why);
  // The failure that says most about this end, with the texts of all.
  HandshakeFailure no_path_left() const;
  // Of a comm that fails because it cannot go on without this path.
  HandshakeFailure lost_path(std::uint8_t path, const HandshakeFailure& why) const;
  std::vector<wire::MissingPath> missing_paths() const;  // for a message to the peer
  std::string missing_text() const;  // "path 1 (its reason), paths 2 and 3 (theirs)"
};

std::string port_text(const Device& device);  // "h0 mlx5_0 port 1", with this host's name

// The ports of a comm, before its paths are made.
class RailPorts {
 public:
  // `paths`: those that are to be made.
  RailPorts(const PendingComm& comm, const std::vector<std::uint8_t>& paths, PortWatch& ports);

  // The facts of the path's port, or why the path is left out. A port that is not active is used
  // only if no port is active: then the device's own errors say best what is wrong.
  Result<const PortFacts*, HandshakeFailure> facts(std::uint8_t path) const;

 private:
  const PendingComm* comm_;
  PortWatch* ports_;
  bool has_active_ = false;
};

// Whether a message names each path of the comm once. The decoder has checked that none is named
// twice.
Outcome<void> check_path_numbers(const PathLayout& layout, const std::vector<std::uint8_t>& paths,
                                 const std::vector<wire::MissingPath>& missing);
template <class Path>
std::vector<std::uint8_t> numbers_of(const std::vector<Path>& paths) {
  std::vector<std::uint8_t> numbers;
  numbers.reserve(paths.size());
  for (const Path& path : paths) numbers.push_back(path.number);
  return numbers;
}

// Takes the end out of the comm. The connection has no link yet.
MadeConnection make_connection(PendingComm& comm, Role role, const wire::Window& peer_window);
// "connected ...", or "accepted ...", with the queue pairs.
std::string connection_text(const Connection& connection);
// Says that the user wants more paths than there can be.
void log_layout(const PendingComm& comm);
// For a timeout while paths are being connected. `limit`: "within 60 s".
std::string connecting_timeout_text(const PendingComm& comm, const std::string& limit);
std::string connecting_timeout_text(const PendingComm& comm, std::uint8_t path,
                                    const std::string& limit);
std::string timeout_limit_text(const ControlOptions& options);  // "within 60 s"

}  // namespace beeline
