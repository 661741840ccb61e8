// SPDX-License-Identifier: Apache-2.0
//
// Makes nullverbs take as much of the processor's time as a real device does. Each call that posts
// work requests takes NULLVERBS_DOORBELL_NS nanoseconds longer, and each completion that a poll
// finds NULLVERBS_COMPLETION_NS. Both are 0 unless the environment sets them.
#pragma once

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
    const std::uint64_t end = __builtin_ia32_rdtsc() + times * ticks_;
    while (__builtin_ia32_rdtsc() < end) __builtin_ia32_pause();
  }

 private:
  static double ticks_per_ns() noexcept {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const std::uint64_t first = __builtin_ia32_rdtsc();
    while (Clock::now() - begin < std::chrono::milliseconds(2)) __builtin_ia32_pause();
    const std::uint64_t ticks = __builtin_ia32_rdtsc() - first;
    const std::chrono::duration<double, std::nano> taken = Clock::now() - begin;
    return static_cast<double>(ticks) / taken.count();
  }

  std::uint64_t ticks_ = 0;
};

inline const Price doorbell_price("NULLVERBS_DOORBELL_NS");
inline const Price completion_price("NULLVERBS_COMPLETION_NS");

}  // namespace nullverbs
