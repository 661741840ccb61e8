// SPDX-License-Identifier: Apache-2.0
//
// TCP ports on which a process may listen.
#pragma once

#include <cstdint>

namespace beeline {

struct PortRange {
  std::uint16_t first = 0;  // 0: any port, which the kernel chooses
  std::uint16_t last = 0;

  bool operator==(const PortRange&) const = default;

  // How many attempts there are.
  std::uint32_t size() const noexcept { return first == 0 ? 1 : last - first + 1U; }
  // The port of an attempt, from 0 on. Different `seed`s begin at different ports, so that the
  // processes of a host find a free one soon.
  std::uint16_t port(std::uint32_t attempt, std::uint32_t seed) const noexcept {
    if (first == 0) return 0;
    return static_cast<std::uint16_t>(first + (seed + attempt) % size());
  }
};

}  // namespace beeline
