// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/peer_route.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "common/base/clock.h"
#include "softnic/nic/random.h"

namespace softnic {
namespace {

constexpr std::uint32_t kAnyKind = 0;

// The destination address of a packet.
struct Address {
  std::uint64_t gid_high = 0;
  std::uint64_t gid_low = 0;
  std::uint32_t lid = 0;
  bool global = false;
};

bool has_gid(const PortRecord& port, const Address& to, std::uint32_t state_wanted) {
  for (std::uint32_t i = 0; i < port.gid_table_len; ++i) {
    const GidRecord& gid = port.gids[i];
    const std::uint32_t state = gid.state.load();
    if (state == 0 || (state_wanted != kAnyKind && state != state_wanted)) continue;
    if (gid.high.load() == to.gid_high && gid.low.load() == to.gid_low) return true;
  }
  return false;
}

// Packets carry the sender's P_Key, and a receiver accepts those of its own partition. Limited
// members (top bit clear) reach full members only.
bool is_same_partition(std::uint32_t one, std::uint32_t other) {
  constexpr std::uint32_t kFullMember = 0x8000;
  constexpr std::uint32_t kPartition = 0x7fff;
  return (one & kPartition) == (other & kPartition) && ((one | other) & kFullMember) != 0;
}

// How often a paused port is checked.
constexpr std::int64_t kLookAgainNs = 5 * beeline::kNsPerMs;

std::optional<std::int64_t> port_paused_until(const PortRecord& port, std::int64_t now) {
  const auto end = static_cast<std::int64_t>(port.paused_until_ns.load());
  if (now >= end) return std::nullopt;
  return std::min(end, now + kLookAgainNs);
}

bool can_deliver(const PortRecord& from, const PortRecord& to, const Address& address,
                 std::uint32_t gid_state) {
  if (from.link_layer != to.link_layer) return false;
  if (std::string_view(from.network) != to.network) return false;
  if (!is_same_partition(from.pkey.load(), to.pkey.load())) return false;
  if (address.global) return has_gid(to, address, gid_state);
  // A packet without a GRH cannot leave its subnet.
  return to.link_layer == LinkLayer::kInfiniBand && address.lid == to.lid.load() &&
         from.gids[0].high.load() == to.gids[0].high.load();
}

Address address_of(const ibv_ah_attr& attr) {
  Address address;
  std::memcpy(&address.gid_high, attr.grh.dgid.raw, 8);
  std::memcpy(&address.gid_low, attr.grh.dgid.raw + 8, 8);
  address.lid = attr.dlid;
  address.global = attr.is_global != 0;
  return address;
}

Address response_address(const QpRecord& qp) {
  return {qp.dest_gid_high, qp.dest_gid_low, qp.dest_lid, qp.dest_is_global != 0};
}

}  // namespace

bool PeerRoute::is_current(const FabricHeader& header) const noexcept {
  return peer_ && peer_->has_seat() && generation_ == header.generation.load() &&
         qp_->state.load() >> 8 == resets_;
}

bool PeerRoute::is_connected_to(std::uint32_t own_qpn) const noexcept {
  if (!peer_->has_seat()) return false;
  const std::uint64_t word = qp_->state.load(std::memory_order_seq_cst);
  return word >> 8 == resets_ && can_receive(state_of(word)) && qp_->dest_qpn.load() == own_qpn;
}

std::optional<std::int64_t> PeerRoute::paused_until(std::int64_t now) const noexcept {
  if (local_ != nullptr) {
    if (const auto until = port_paused_until(*local_, now)) return until;
  }
  return remote_ == nullptr ? std::nullopt : port_paused_until(*remote_, now);
}

std::uint32_t PeerRoute::loss_ppm(const PortRecord& sends) const noexcept {
  std::uint64_t arriving = Random::kCertain;
  for (const std::uint32_t loss :
       {local_->loss_ppm.load(), remote_->loss_ppm.load(), sends.sent_loss_ppm.load()}) {
    arriving = arriving * (Random::kCertain - std::min(loss, Random::kCertain)) / Random::kCertain;
  }
  return Random::kCertain - static_cast<std::uint32_t>(arriving);
}

bool PeerRoute::loses(std::uint64_t length) const noexcept {
  const auto is_over = [length](const PortRecord& port) {
    const std::uint64_t most = port.lost_over_bytes.load();
    return most != 0 && length > most;
  };
  return is_over(*local_) || is_over(*remote_);
}

bool PeerRoute::refresh(Runtime& runtime, const ibv_qp_attr& attr, std::uint32_t own_device,
                        std::uint32_t own_qpn) {
  FabricHeader& header = runtime.header();
  if (is_current(header)) [[likely]]
    return true;
  forget_peer();
  local_ = &header.devices[own_device].ports[attr.ah_attr.port_num - 1];
  const std::uint32_t generation = header.generation.load();
  auto peer = runtime.peer(qpn_slot(attr.dest_qp_num));
  if (!peer) return false;
  QpRecord& qp = peer->arena().qp(qpn_index(attr.dest_qp_num));
  const std::uint64_t word = qp.state.load();
  if (!can_receive(state_of(word)) || qp.dest_qpn.load() != own_qpn) return false;
  PortRecord& local = *local_;
  DeviceRecord& remote_device = header.devices[qp.device % kMaxDevices];
  PortRecord& remote = remote_device.ports[qp.port % kMaxPorts];
  // A device that was removed has lost its queue pairs, even if it is back.
  if (remote_device.removals.load() != qp.removals.load()) return false;
  std::uint32_t gid_state = kAnyKind;
  if (attr.ah_attr.is_global != 0) {
    gid_state = local.gids[attr.ah_attr.grh.sgid_index % kMaxGids].state.load();
    if (gid_state == 0) return false;  // the own address was removed from the table
  }
  // Responses use the same RoCE version as requests.
  const bool there = can_deliver(local, remote, address_of(attr.ah_attr), gid_state);
  const bool back = can_deliver(remote, local, response_address(qp), gid_state);
  // The fields of the QP belong together only if its state word has not changed.
  if (!there || !back || qp.state.load() != word) return false;
  peer_ = std::move(peer);
  qp_ = &qp;
  remote_ = &remote;
  resets_ = word >> 8;
  generation_ = generation;
  return true;
}

}  // namespace softnic
