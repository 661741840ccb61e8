// SPDX-License-Identifier: Apache-2.0
//
// Checks the promise that one thread at a time uses an object. A device that relies on it takes no
// lock, so two threads would corrupt its queues.
#pragma once

#include <atomic>

#include "tests/support/nullverbs/counters.h"

namespace nullverbs {

class Promise {
 public:
  void give() noexcept { given_ = true; }

 private:
  friend class Visit;
  bool given_ = false;
  std::atomic<bool> inside_{false};
};

// One call that uses the object.
class Visit {
 public:
  explicit Visit(Promise& promise) noexcept : promise_(promise.given_ ? &promise : nullptr) {
    if (promise_ != nullptr && promise_->inside_.exchange(true, std::memory_order_relaxed)) {
      count_surely(&NullverbsReport::intrusions);
      count_surely(&NullverbsReport::failures);
    }
  }
  ~Visit() {
    if (promise_ != nullptr) promise_->inside_.store(false, std::memory_order_relaxed);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Promise* const promise_;
};

}  // namespace nullverbs
