// SPDX-License-Identifier: Apache-2.0
// A short lock between the threads of one process, for sections of a few dozen instructions.
#pragma once

#include <sched.h>

#include <atomic>

#include "softnic/fabric/robust_lock.h"

namespace softnic {

class SpinLock {
 public:
  void lock() noexcept {
    for (unsigned spins = 1; taken_.exchange(true, std::memory_order_acquire); ++spins) {
      if (spins % 64 == 0) {
        ::sched_yield();
      } else {
        cpu_pause();
      }
    }
  }
  bool try_lock() noexcept { return !taken_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace softnic
