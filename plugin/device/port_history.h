// SPDX-License-Identifier: Apache-2.0
//
// The times of a port's last events, for the report on a connection that fails later. Threads: the
// control thread writes, and any thread reads.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plugin/verbs/async_event.h"

namespace beeline {

class PortHistory {
 public:
  void record(verbs::EventKind kind, std::int64_t now_ns) noexcept {
    times_[static_cast<std::size_t>(kind)].store(now_ns, std::memory_order_relaxed);
  }

  // The time of the last event, by the monotonic clock; 0: none.
  std::int64_t went_down_ns() const noexcept { return last(verbs::EventKind::kPortError); }
  std::int64_t came_up_ns() const noexcept { return last(verbs::EventKind::kPortActive); }
  std::int64_t gids_changed_ns() const noexcept { return last(verbs::EventKind::kGidChange); }
  std::int64_t pkeys_changed_ns() const noexcept { return last(verbs::EventKind::kPkeyChange); }
  // The last of these events; 0: none.
  std::int64_t newest_ns() const noexcept {
    return std::max({went_down_ns(), came_up_ns(), gids_changed_ns(), pkeys_changed_ns()});
  }

 private:
  std::int64_t last(verbs::EventKind kind) const noexcept {
    return times_[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
  }

  std::array<std::atomic<std::int64_t>, verbs::kEventKinds> times_{};
};

}  // namespace beeline
