// SPDX-License-Identifier: Apache-2.0
//
// The times of a port's last events, for the report on a connection that fails later. Threads: the
// control thread writes, and any thread reads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "plugin/verbs/async_event.h"

namespace beeline {

class PortHistory {
 public:
  void record(verbs::EventKind kind, std::int64_t now_ns) noexcept;

  // The time of the last event, by the monotonic clock; 0: none.
  std::int64_t went_down_ns() const noexcept { return load(went_down_ns_); }
  std::int64_t came_up_ns() const noexcept { return load(came_up_ns_); }
  std::int64_t gids_changed_ns() const noexcept { return load(gids_changed_ns_); }
  std::int64_t pkeys_changed_ns() const noexcept { return load(pkeys_changed_ns_); }
  // The last event, of any kind; 0: none.
  std::int64_t newest_ns() const noexcept {
    return std::max({went_down_ns(), came_up_ns(), gids_changed_ns(), pkeys_changed_ns()});
  }

 private:
  using Time = std::atomic<std::int64_t>;
  static std::int64_t load(const Time& time) noexcept {
    return time.load(std::memory_order_relaxed);
  }

  Time went_down_ns_{0};
  Time came_up_ns_{0};
  Time gids_changed_ns_{0};
  Time pkeys_changed_ns_{0};
};

}  // namespace beeline
