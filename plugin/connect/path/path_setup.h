// SPDX-License-Identifier: Apache-2.0
//
// One path of a comm while it is being made: its queues, from their creation to RTS, and the route
// that the handshake agreed on. Creating queues takes milliseconds on real devices, so only the
// control thread does it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/problem.h"
#include "plugin/connect/comm/connection.h"
#include "plugin/connect/path/path_layout.h"
#include "plugin/connect/path/qp_options.h"
#include "plugin/verbs/qp_steps.h"
#include "plugin/wire/message.h"

namespace beeline {

// How one end of a path reaches the other.
struct Route {
  std::uint16_t pkey_index = 0;
  OwnAddress own;
  verbs::PathParams path;
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t peer_qpn = 0;
  std::uint32_t peer_psn = 0;
  std::uint8_t reads = 0;      // RDMA READs outstanding at once, either way
  std::optional<ibv_ece> ece;  // of the peer's queue pair
  Notify notify = Notify::kImmediate;
  std::string peer_device;       // "mlx5_0:1"
  std::uint32_t speed_mbps = 0;  // of the slower port; 0: unknown
};

class PathSetup {
 public:
  static constexpr std::int64_t kResolveAgainNs = 50 * kNsPerMs;

  // The queue pair stays in RESET, because its partition is agreed on later. `scratch` is one zero
  // byte of the comm's memory, registered with this device.
  static Result<PathSetup> create(const PathPlace& place, const Device& device,
                                  const CommPlan& plan, const QpOptions& options,
                                  const ibv_sge& scratch);

  const Device& device() const noexcept { return *path_.device; }
  std::uint32_t psn() const noexcept { return psn_; }
  std::uint32_t qpn() const noexcept { return path_.queues.qp->qp_num; }
  const verbs::Qp& qp() const noexcept { return path_.queues.qp; }
  ibv_cq* cq() const noexcept { return path_.queues.cq.get(); }
  const ibv_sge& scratch() const noexcept { return scratch_; }

  // Everything that this end's queue pair can do, for the peer to choose from.
  std::optional<ibv_ece> ece() const;
  // The options in use once the queue pair is connected; none if one end has none.
  std::optional<ibv_ece> agreed_ece() const { return route_.ece ? ece() : std::nullopt; }

  void set_route(Route route);
  const Route& route() const noexcept { return route_; }

  // Moves the queue pair to RTS along the route. kTimeout: the peer's address is not resolved yet;
  // call again after kResolveAgainNs.
  Status connect(const QpOptions& options);
  // Instead of connect(): the connection manager has moved the queue pair to RTS.
  void adopt(verbs::CmId id) noexcept;
  bool is_connected() const noexcept { return is_connected_; }

  // Writes 0 bytes to see whether the path works.
  Status start_probe() const;
  // Whether that write has completed.
  Outcome<bool> poll_probe() const;

  PathResources finish() &&;

 private:
  PathSetup() = default;

  PathResources path_;
  ibv_sge scratch_ = {};
  Route route_;
  std::uint32_t psn_ = 0;
  bool has_ece_enabled_ = false;
  bool has_set_ece_ = false;
  bool is_connected_ = false;
};

}  // namespace beeline
