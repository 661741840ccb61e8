// SPDX-License-Identifier: Apache-2.0
// The cached route from a queue pair to the one that it is connected to: the peer's process, its QP
// record, and both ports. It exists only if the fabric delivers packets in both directions.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "softnic/fabric/arena.h"
#include "softnic/nic/runtime.h"

namespace softnic {

// A queue pair in this state receives messages.
constexpr bool can_receive(std::uint32_t state) {
  return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD;
}

class PeerRoute {
 public:
  // Looks the route up again if anything has changed. Returns false if there is none.
  bool refresh(Runtime& runtime, const ibv_qp_attr& attr, std::uint32_t own_device,
               std::uint32_t own_qpn);
  void forget() noexcept {
    forget_peer();
    local_ = nullptr;
    remote_ = nullptr;
  }

  // Whether the peer QP is still the same, can receive, and is connected to this one. The caller
  // holds a BusyGuard (fence.h).
  bool is_connected_to(std::uint32_t own_qpn) const noexcept;
  // Whether the peer accepts messages of this connection.
  bool is_bound_to(std::uint64_t connection) const noexcept {
    return qp_->bound_to.load() == connection;
  }

  // How often the peer QP had been reset when the route was found. After another reset the route is
  // not valid.
  std::uint64_t resets() const noexcept { return resets_; }
  bool has_peer() const noexcept { return peer_ != nullptr; }
  Peer& peer() const noexcept { return *peer_; }
  QpRecord& qp() const noexcept { return *qp_; }
  PortRecord& local() const noexcept { return *local_; }
  PortRecord& remote() const noexcept { return *remote_; }

  // The PortFault bits of both ports, as far as they were found.
  std::uint32_t faults() const noexcept {
    const std::uint32_t ours =
        local_ == nullptr ? 0 : local_->faults.load(std::memory_order_relaxed);
    return remote_ == nullptr ? ours : ours | remote_->faults.load(std::memory_order_relaxed);
  }
  // When to check again, if one of the ports is paused.
  std::optional<std::int64_t> paused_until(std::int64_t now) const noexcept;
  // How many of a million pieces are lost between the two ports: of those that the own port sends,
  // and of those that the other one sends.
  std::uint32_t sent_loss_ppm() const noexcept { return loss_ppm(*local_); }
  std::uint32_t answer_loss_ppm() const noexcept { return loss_ppm(*remote_); }
  // Whether messages of this length are lost.
  bool loses(std::uint64_t length) const noexcept;

 private:
  bool is_current(const FabricHeader& header) const noexcept;
  std::uint32_t loss_ppm(const PortRecord& sends) const noexcept;
  void forget_peer() noexcept { peer_.reset(); }

  std::shared_ptr<Peer> peer_;
  QpRecord* qp_ = nullptr;
  PortRecord* local_ = nullptr;
  PortRecord* remote_ = nullptr;
  std::uint64_t resets_ = 0;  // of the peer QP, as in its state word
  std::uint32_t generation_ = 0;
};

}  // namespace softnic
