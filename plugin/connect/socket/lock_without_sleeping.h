// SPDX-License-Identifier: Apache-2.0
//
// Taking a mutex without going to sleep over it. A thread of NCCL's serves many connections, and
// what it waits for here is over in a moment: the holder may only have lost its processor.
#pragma once

#include <sched.h>

#include <mutex>

namespace beeline {

// Tries, and lets others run in between. Sleeps in the end: who has not come out by then is
// stopped.
inline std::unique_lock<std::mutex> lock_without_sleeping(std::mutex& mutex) {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    std::unique_lock lock(mutex, std::try_to_lock);
    if (lock) return lock;
    ::sched_yield();
  }
  return std::unique_lock(mutex);
}

}  // namespace beeline
