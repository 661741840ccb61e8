// SPDX-License-Identifier: Apache-2.0
//
// Notices that a thread does not come back from the plugin. No call of the interface may block, so
// one that does is a finding of its own.
#pragma once

#include <atomic>
#include <cstdint>

namespace beeline::perf {

class CallWatch {
 public:
  // Around a call, on the one thread that this watch belongs to.
  class Inside {
   public:
    Inside(CallWatch& watch, const char* call) noexcept : watch_(watch) {
      watch_.call_.store(call, std::memory_order_relaxed);
      watch_.step();
    }
    ~Inside() { watch_.step(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    CallWatch& watch_;
  };

  // The call that has been going on since this was last asked, or null. For one asking thread.
  const char* stuck_in() noexcept {
    const std::uint64_t now = steps_.load(std::memory_order_relaxed);
    const bool stuck = now % 2 == 1 && now == seen_;
    seen_ = now;
    return stuck ? call_.load(std::memory_order_relaxed) : nullptr;
  }

 private:
  // Odd while inside. Only one thread writes, so no read-modify-write is needed.
  void step() noexcept {
    steps_.store(steps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> steps_{0};
  std::atomic<const char*> call_{nullptr};
  std::uint64_t seen_ = 0;
};

// The two threads that call.
struct CallWatches {
  CallWatch progress;
  CallWatch service;
};

}  // namespace beeline::perf
