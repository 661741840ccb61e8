// SPDX-License-Identifier: Apache-2.0
//
// What a real device costs the processor and this library does not: NULLVERBS_DOORBELL_NS for each
// call that posts work requests, and NULLVERBS_COMPLETION_NS for each completion that a poll finds.
// Without these variables both are 0.
#pragma once

#include <x86intrin.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>

namespace nullverbs {

class Price {
 public:
  explicit Price(const char* variable) noexcept {
    const char* const text = std::getenv(variable);
    const double ns = text != nullptr ? std::strtod(text, nullptr) : 0;
    if (ns > 0) ticks_ = static_cast<std::uint64_t>(ns * ticks_per_ns());
  }

  // Takes the time `times` over.
  void pay(std::uint64_t times = 1) const noexcept {
    if (ticks_ == 0) return;
    const std::uint64_t end = __rdtsc() + times * ticks_;
    while (__rdtsc() < end) _mm_pause();
  }

 private:
  static double ticks_per_ns() noexcept {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const std::uint64_t first = __rdtsc();
    while (Clock::now() - begin < std::chrono::milliseconds(2)) _mm_pause();
    const std::uint64_t ticks = __rdtsc() - first;
    const std::chrono::duration<double, std::nano> taken = Clock::now() - begin;
    return static_cast<double>(ticks) / taken.count();
  }

  std::uint64_t ticks_ = 0;
};

inline const Price doorbell_price("NULLVERBS_DOORBELL_NS");
inline const Price completion_price("NULLVERBS_COMPLETION_NS");

}  // namespace nullverbs
