// SPDX-License-Identifier: Apache-2.0
//
// One end of a comm while it is being made: memory, completion queue, queue pair. Making them takes
// milliseconds on real devices, which is why only the control thread does it.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "plugin/connect/comm/connection.h"
#include "plugin/connect/path/qp_options.h"
#include "plugin/verbs/qp_steps.h"
#include "plugin/wire/message.h"

namespace beeline {

// How one end reaches the other.
struct Route {
  std::uint16_t pkey_index = 0;
  OwnAddress own;
  verbs::PathParams path;
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t peer_qpn = 0;
  std::uint32_t peer_psn = 0;
  std::uint8_t reads = 0;      // READs open at once, either way
  std::optional<ibv_ece> ece;  // what the peer's queue pair has
};

class Endpoint {
 public:
  static constexpr std::int64_t kResolveAgainNs = 50 * kNsPerMs;

  // The queue pair stays in RESET: which partition it belongs to is agreed later.
  static Result<Endpoint> create(const Device& device, const EndpointPlan& plan,
                                 const QpOptions& options);

  const Device& device() const noexcept { return *path_.device; }
  std::uint32_t psn() const noexcept { return psn_; }
  std::uint32_t qpn() const noexcept { return path_.queues.qp->qp_num; }
  const verbs::Qp& qp() const noexcept { return path_.queues.qp; }
  const ControlBlock& memory() const noexcept { return memory_; }
  ibv_cq* cq() const noexcept { return path_.queues.cq.get(); }
  // What this end's queue pair has, for the peer to choose from; once connected, what is in use.
  std::optional<ibv_ece> ece() const;
  wire::Window window() const noexcept;

  // All the way to RTS. kTimeout: the peer's address is not resolved yet, try again after
  // kResolveAgainNs.
  Status connect(const Route& route, const QpOptions& options);

  // What the queue pair was connected by, instead.
  void adopt(verbs::CmId id) noexcept { path_.queues.cm = std::move(id); }

  // Takes everything. Without the link, which is the caller's to add.
  Connection finish(Role role, const wire::Window& peer_window, Notify notify,
                    const wire::QpFacts& peer) &&;

 private:
  Endpoint() = default;

  ControlBlock memory_;
  CommMemory comm_;
  std::size_t window_bytes_ = 0;
  PathResources path_;
  std::uint32_t psn_ = 0;
  bool wants_ece_ = false;
  bool ece_is_set_ = false;
};

}  // namespace beeline
