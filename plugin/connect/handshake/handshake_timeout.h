// SPDX-License-Identifier: Apache-2.0
//
// The timeout of one end of a handshake. It counts silence only. Time in which this process's
// control thread was busy does not count, because the answer may be in its queue. A message about
// any handshake on the same channel starts the count again, because it shows that the peer is
// working through its own queue.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "common/base/clock.h"
#include "plugin/connect/socket/poller.h"

namespace beeline {

class HandshakeTimeout {
 public:
  // The handshake ends after so many times the limit, however busy both ends are.
  static constexpr int kMaxTimes = 10;

  HandshakeTimeout() = default;
  HandshakeTimeout(const Poller& poller, std::chrono::milliseconds limit) noexcept
      : limit_ns_(limit.count() * kNsPerMs),
        began_ns_(now_ns()),
        waited_before_ns_(poller.waited_ns()) {}

  // The time that is left; 0 or less if the timeout has expired. `heard` is the poller's
  // waited_ns() when the peer's last message arrived.
  std::int64_t left_ns(const Poller& poller, std::int64_t heard) const noexcept {
    const std::int64_t silent = poller.waited_ns() - std::max(waited_before_ns_, heard);
    return std::min(limit_ns_ - silent, began_ns_ + kMaxTimes * limit_ns_ - now_ns());
  }

 private:
  std::int64_t limit_ns_ = 0;
  std::int64_t began_ns_ = 0;
  std::int64_t waited_before_ns_ = 0;
};

}  // namespace beeline
