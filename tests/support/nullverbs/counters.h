// SPDX-License-Identifier: Apache-2.0
//
// The one report of this library. Counting costs a load and a store, so two threads that count at
// the same time may lose a count.
#pragma once

#include <atomic>
#include <cstdint>

#include "tests/support/nullverbs/report.h"

namespace nullverbs {

inline NullverbsReport report = {};

inline void count(std::uint64_t NullverbsReport::*counter, std::uint64_t by = 1) noexcept {
  const std::atomic_ref word(report.*counter);
  word.store(word.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

// For rare events, of which none may be lost.
inline void count_surely(std::uint64_t NullverbsReport::*counter, int by = 1) noexcept {
  std::atomic_ref(report.*counter)
      .fetch_add(static_cast<std::uint64_t>(by), std::memory_order_relaxed);
}

}  // namespace nullverbs
