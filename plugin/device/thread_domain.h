// SPDX-License-Identifier: Apache-2.0
//
// A protection domain by which the device knows that one thread at a time uses what is made in it,
// and that it needs no locks for that (docs/decisions/0012-one-thread-at-a-time.md). Memory that is
// registered in the device's own domain serves it.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "plugin/verbs/handles.h"

namespace beeline {

class DeviceContext;

// Lifecycle: dies before its DeviceContext, and after what was made in it.
// Threads: made by one thread, freed by any.
class ThreadDomain {
 public:
  ThreadDomain() noexcept = default;  // none
  // None where this process has `most` of them on the device, or the device has none to give.
  static ThreadDomain make(DeviceContext& context, ibv_pd* pd, int most);

  ThreadDomain(ThreadDomain&&) noexcept = default;
  // What it held goes in the right order, which is not that of the members.
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

  static Place take_place(DeviceContext& context, int most) noexcept;

  Place place_;  // among those of the process
  verbs::Td td_;
  verbs::Pd pd_;
};

}  // namespace beeline
