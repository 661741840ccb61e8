// SPDX-License-Identifier: Apache-2.0
// Timing of shaped ports. Every port has a simulated wire in each direction, which all processes
// share: each reserves time for its bytes after the bytes that were reserved before.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/clock.h"
#include "softnic/fabric/layout.h"

namespace softnic {

// A sender that comes back to its work later than it wanted still gets the full rate, up to this
// delay: on a busy machine its thread waits for the scheduler, which a NIC does not.
inline constexpr std::int64_t kWirePatienceNs = 20 * beeline::kNsPerMs;

// Reserves `bytes` and returns when the last of them has passed. `ready_at` is when they could have
// been sent.
inline std::int64_t reserve_wire(Shared<std::uint64_t>& free_at, std::uint64_t bytes,
                                 std::uint64_t rate, std::int64_t ready_at) {
  if (rate == 0) return ready_at;
  const auto duration =
      static_cast<std::int64_t>(static_cast<double>(bytes) * 1e9 / static_cast<double>(rate));
  std::uint64_t free = free_at.load();
  for (;;) {
    const std::int64_t start = std::max(static_cast<std::int64_t>(free), ready_at);
    if (free_at.compare_exchange(free, static_cast<std::uint64_t>(start + duration))) {
      return start + duration;
    }
  }
}

// When `bytes` have left `from` and entered `to`, propagation aside.
inline std::int64_t reserve_both_wires(PortRecord& from, PortRecord& to, std::uint64_t bytes,
                                       std::int64_t ready_at) {
  const std::int64_t sent =
      reserve_wire(from.egress_free_ns, bytes, from.rate_bytes_s.load(), ready_at);
  const std::int64_t received =
      reserve_wire(to.ingress_free_ns, bytes, to.rate_bytes_s.load(), ready_at);
  return std::max(sent, received);
}

}  // namespace softnic
