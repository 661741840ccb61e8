// SPDX-License-Identifier: Apache-2.0
//
// A parent domain with a thread domain. It tells the provider that only one thread at a time uses
// the objects in it, so that they need no locks (docs/decisions/0012-one-thread-at-a-time.md).
// Memory that is registered in the device's protection domain can be used there.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "plugin/verbs/handles.h"

namespace beeline {

class DeviceContext;

// Lifecycle: destroyed after the objects that were created in it.
// Threads: one thread creates it, and any thread may free it.
class ThreadDomain {
 public:
  ThreadDomain() noexcept = default;  // none
  // None if this process has `most` of them on the device already, or if the device refuses it.
  static ThreadDomain make(DeviceContext& context, ibv_pd* pd, int most);

  ThreadDomain(ThreadDomain&&) noexcept = default;
  // Swaps, so that the old objects are destroyed in reverse order of the members.
  ThreadDomain& operator=(ThreadDomain other) noexcept {
    std::swap(place_, other.place_);
    std::swap(td_, other.td_);
    std::swap(pd_, other.pd_);
    return *this;
  }

  explicit operator bool() const noexcept { return static_cast<bool>(pd_); }
  ibv_pd* pd() const noexcept { return pd_.get(); }  // null: none

 private:
  struct Leave {
    void operator()(std::atomic<int>* in_use) const noexcept {
      in_use->fetch_sub(1, std::memory_order_relaxed);
    }
  };
  using Place = std::unique_ptr<std::atomic<int>, Leave>;

  Place place_;  // counts it among those of the process
  verbs::Td td_;
  verbs::Pd pd_;
};

}  // namespace beeline
