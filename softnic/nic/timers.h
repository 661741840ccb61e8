// SPDX-License-Identifier: Apache-2.0
// Decodes the two timers of a reliable connection (InfiniBand specification).
#pragma once

#include <cstdint>

namespace softnic {

// Local ACK timeout: 4.096 us times two to the power of the code. 0 means an infinite timeout.
constexpr std::int64_t ack_timeout_ns(std::uint32_t code) {
  return code == 0 ? 0 : std::int64_t{4096} << code;
}

// RNR NAK timer: a table of 32 values, in units of 10 us.
std::int64_t rnr_wait_ns(std::uint32_t code) noexcept;

}  // namespace softnic
