// SPDX-License-Identifier: Apache-2.0
//
// Detects a thread that is stuck in a call to the plugin. No call of NCCL's interface may block, so
// this is an error of its own.
#pragma once

#include <atomic>
#include <cstdint>

namespace beeline::perf {

class CallWatch {
 public:
  // The scope of one call, on the thread that this watch belongs to.
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

  // The call that has not returned since the previous stuck_in(), or null. Only one thread may ask.
  const char* stuck_in() noexcept {
    const std::uint64_t now = steps_.load(std::memory_order_relaxed);
    const bool stuck = now % 2 == 1 && now == seen_;
    seen_ = now;
    return stuck ? call_.load(std::memory_order_relaxed) : nullptr;
  }

 private:
  // The count is odd during a call. Only one thread writes it, so no read-modify-write is needed.
  void step() noexcept {
    steps_.store(steps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> steps_{0};
  std::atomic<const char*> call_{nullptr};
  std::uint64_t seen_ = 0;
};

// One for each of the two threads that call the plugin.
struct CallWatches {
  CallWatch progress;
  CallWatch service;
};

}  // namespace beeline::perf
