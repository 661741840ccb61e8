// SPDX-License-Identifier: Apache-2.0
//
// Locks a mutex without sleeping, for NCCL's threads: each serves many connections. The mutexes in
// question are held for moments only. With a plain lock, most runs of tests/plugin/scale see a call
// sleep.
#pragma once

#include <sched.h>

#include <mutex>

namespace beeline {

// Lets other threads run between its tries. Sleeps after many of them: the holder of the mutex has
// been stopped then.
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
