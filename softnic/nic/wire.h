// SPDX-License-Identifier: Apache-2.0
// Time on a shaped wire. Every port has two, one out and one in, shared by all who use it: each
// reserves its bytes behind those already handed over, and learns when the last of them is through.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/clock.h"
#include "softnic/fabric/layout.h"

namespace softnic {

// How late a sender may come back to its work and still get the full rate: on a busy machine our
// threads wait for the scheduler, which a NIC does not.
inline constexpr std::int64_t kWirePatienceNs = 20 * beeline::kNsPerMs;

// `ready_at`: since when the bytes could have been sent.
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
