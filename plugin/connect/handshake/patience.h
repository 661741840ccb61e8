// SPDX-License-Identifier: Apache-2.0
//
// How long one end of a handshake waits for the other. What counts is silence: time that this
// process's own control thread was at work does not count, since the answer may lie in its queue;
// and a peer that answers others of the same channel is at work on its own queue.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "common/base/clock.h"
#include "plugin/connect/socket/poller.h"

namespace beeline {

class Patience {
 public:
  // Every wait ends, also when there is always something else to do.
  static constexpr int kMostTimes = 10;

  Patience() = default;
  Patience(const Poller& poller, std::chrono::milliseconds limit) noexcept
      : limit_ns_(limit.count() * kNsPerMs),
        began_ns_(now_ns()),
        waited_before_ns_(poller.waited_ns()) {}

  // What is left, at `heard`, the waited_ns() at which the peer was last heard of: 0 or less is the
  // end.
  std::int64_t left_ns(const Poller& poller, std::int64_t heard) const noexcept {
    const std::int64_t silent = poller.waited_ns() - std::max(waited_before_ns_, heard);
    return std::min(limit_ns_ - silent, began_ns_ + kMostTimes * limit_ns_ - now_ns());
  }

 private:
  std::int64_t limit_ns_ = 0;
  std::int64_t began_ns_ = 0;
  std::int64_t waited_before_ns_ = 0;
};

}  // namespace beeline
