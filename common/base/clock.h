// SPDX-License-Identifier: Apache-2.0
//
// Time as a number of nanoseconds. It is signed, because differences can be negative.
#pragma once

#include <ctime>

#include <cstdint>

namespace beeline {

inline constexpr std::int64_t kNsPerUs = 1'000;
inline constexpr std::int64_t kNsPerMs = 1'000'000;
inline constexpr std::int64_t kNsPerSec = 1'000'000'000;

// CLOCK_MONOTONIC: it never goes back, and is the same in every process of a host.
inline std::int64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // cannot fail with this clock
  return now.tv_sec * kNsPerSec + now.tv_nsec;
}

// By how much the clock of another host is ahead of this one's, and by how much that may be wrong.
// An error of 0: not measured.
struct ClockOffset {
  std::int64_t ahead_ns = 0;
  std::int64_t error_ns = 0;
};

}  // namespace beeline
