// SPDX-License-Identifier: Apache-2.0
// A spin lock between processes that can be taken from a dead holder. Changes under it must be
// published by a single store, so that the data is consistent whenever a holder dies.
#pragma once

#include <sched.h>

#include <cstdint>

#include "softnic/fabric/shared.h"

namespace softnic {

inline void cpu_pause() noexcept { __builtin_ia32_pause(); }

class RobustLock {
 public:
  // `self` is the caller's seat (seat_word). `is_alive(seat)` makes a system call; it is called
  // only after a long wait.
  template <class IsAlive>
  void lock(std::uint32_t self, IsAlive&& is_alive) noexcept {
    for (std::uint32_t spins = 1;; ++spins) {
      std::uint32_t holder = 0;
      if (holder_.compare_exchange(holder, self)) return;
      if (spins % kSpinsBeforeYield != 0) {
        cpu_pause();
        continue;
      }
      ::sched_yield();
      if (spins % kSpinsBeforeAsking == 0 && !is_alive(holder) &&
          holder_.compare_exchange(holder, self)) {
        return;
      }
    }
  }
  void unlock() noexcept { holder_.store(0); }

 private:
  static constexpr std::uint32_t kSpinsBeforeYield = 64;
  static constexpr std::uint32_t kSpinsBeforeAsking = 64 * 256;
  Shared<std::uint32_t> holder_;
};

}  // namespace softnic
