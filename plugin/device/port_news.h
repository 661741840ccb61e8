// SPDX-License-Identifier: Apache-2.0
//
// The events of one port, kept for the report on a connection that fails later. Threads: the
// control thread writes, any thread reads.
#pragma once

#include <atomic>
#include <cstdint>

#include "plugin/verbs/async_event.h"

namespace beeline {

class PortNews {
 public:
  void hear(verbs::EventKind kind, std::int64_t now_ns) noexcept;

  // When it last happened, by the monotonic clock; 0: never.
  std::int64_t went_down_ns() const noexcept { return load(went_down_ns_); }
  std::int64_t came_up_ns() const noexcept { return load(came_up_ns_); }
  std::int64_t gids_changed_ns() const noexcept { return load(gids_changed_ns_); }
  std::int64_t pkeys_changed_ns() const noexcept { return load(pkeys_changed_ns_); }

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
