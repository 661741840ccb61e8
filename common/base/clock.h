// SPDX-License-Identifier: Apache-2.0
//
// Time as a plain number of nanoseconds. Signed, so that a difference may be negative.
#pragma once

#include <ctime>

#include <cstdint>

namespace beeline {

inline constexpr std::int64_t kNsPerUs = 1'000;
inline constexpr std::int64_t kNsPerMs = 1'000'000;
inline constexpr std::int64_t kNsPerSec = 1'000'000'000;

// CLOCK_MONOTONIC: never steps back, the same in every process of one host.
inline std::int64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // cannot fail with this clock
  return now.tv_sec * kNsPerSec + now.tv_nsec;
}

}  // namespace beeline
