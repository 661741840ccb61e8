// SPDX-License-Identifier: Apache-2.0
#include "softnic/fabric/port_faults.h"

#include <cstring>

namespace softnic {
namespace {

void set_fault(PortRecord& port, std::uint32_t bit, bool on) {
  if (on) {
    port.faults.fetch_or(bit);
  } else {
    port.faults.fetch_and(~bit);
  }
}

void update_lossy(PortRecord& port) {
  set_fault(port, kFaultLossy,
            port.loss_ppm.load() != 0 || port.sent_loss_ppm.load() != 0 ||
                port.lost_over_bytes.load() != 0);
}

void update_shaped(PortRecord& port) {
  set_fault(
      port, kFaultShaped,
      port.rate_bytes_s.load() != 0 || port.latency_ns.load() != 0 || port.jitter_ns.load() != 0);
}

// The type of a GID if the command names none: the type that the entry has, or else, on RoCE, the
// type of the entry two places away, because each address appears as RoCE v1 and then as v2.
std::uint32_t default_gid_state(const PortRecord& port, std::uint32_t index) {
  if (port.link_layer == LinkLayer::kInfiniBand)
    return 1 + static_cast<std::uint32_t>(GidKind::kIb);
  const auto state_at = [&](std::uint32_t i) {
    return i < port.gid_table_len ? port.gids[i].state.load() : 0;
  };
  for (const std::uint32_t state : {state_at(index), state_at(index - 2), state_at(index + 2)})
    if (state != 0) return state;
  return 1 + static_cast<std::uint32_t>(GidKind::kRoceV2);
}

}  // namespace

void switch_port(PortRecord& port, bool up) { set_fault(port, kFaultDown, !up); }

void shape(PortRecord& port, std::uint64_t rate_bytes_s, std::uint64_t latency_ns) {
  port.rate_bytes_s.store(rate_bytes_s);
  port.latency_ns.store(latency_ns);
  // Reservations of the wire at the old rate are void.
  port.egress_free_ns.store(0);
  port.ingress_free_ns.store(0);
  update_shaped(port);
}

void set_jitter(PortRecord& port, std::uint64_t ns) {
  port.jitter_ns.store(ns);
  update_shaped(port);
}

void set_loss(PortRecord& port, std::uint32_t ppm) {
  port.loss_ppm.store(ppm);
  update_lossy(port);
}

void set_sent_loss(PortRecord& port, std::uint32_t ppm) {
  port.sent_loss_ppm.store(ppm);
  update_lossy(port);
}

void lose_over(PortRecord& port, std::uint64_t bytes) {
  port.lost_over_bytes.store(bytes);
  update_lossy(port);
}

void black_hole(PortRecord& port) { set_fault(port, kFaultBlackHole, true); }

void pause_until(PortRecord& port, std::uint64_t monotonic_ns) {
  port.paused_until_ns.store(monotonic_ns);
  set_fault(port, kFaultPaused, true);
}

void resume(PortRecord& port) {
  port.paused_until_ns.store(0);
  set_fault(port, kFaultPaused | kFaultBlackHole, false);
}

void arm_error(PortRecord& port, std::uint32_t status, std::uint64_t countdown) {
  port.error_status.store(status);
  port.error_countdown.store(countdown);
  set_fault(port, kFaultError, true);
}

void arm_corruption(PortRecord& port, std::uint64_t countdown) {
  port.corrupt_countdown.store(countdown);
  set_fault(port, kFaultCorrupt, true);
}

void arm_discard(PortRecord& port, std::uint64_t most_bytes, std::uint64_t countdown) {
  port.discard_bytes.store(most_bytes);
  port.discard_countdown.store(countdown);
  set_fault(port, kFaultDiscard, true);
}

void disarm(PortRecord& port) {
  set_fault(port, kFaultError | kFaultCorrupt | kFaultDiscard, false);
  port.error_countdown.store(0);
  port.corrupt_countdown.store(0);
  port.discard_countdown.store(0);
}

void set_gid(PortRecord& port, const PortCommand& command) {
  const auto index = static_cast<std::uint32_t>(command.value);
  if (index >= port.gid_table_len) return;
  const std::uint32_t state = command.gid_kind ? 1 + static_cast<std::uint32_t>(*command.gid_kind)
                                               : default_gid_state(port, index);
  GidRecord& entry = port.gids[index];
  entry.state.store(0);
  if (!command.gid) return;
  std::uint64_t halves[2];
  std::memcpy(halves, command.gid->data(), sizeof halves);
  entry.high.store(halves[0]);
  entry.low.store(halves[1]);
  entry.state.store(state);
}

}  // namespace softnic
