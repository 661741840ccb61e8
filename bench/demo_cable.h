// SPDX-License-Identifier: Apache-2.0
//
// The simulated cable that the demo pulls while data moves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "bench/support/fabric_port.h"
#include "common/base/clock.h"

namespace beeline::bench {

inline constexpr int64_t kCableOutNs = 50 * kNsPerMs;

// Takes the link down after a number of writes, sets it up again a little later, and measures the
// longest time without a completed write.
class Cable {
 public:
  explicit Cable(size_t pull_after) : pull_after_(pull_after) {}

  int64_t silence_ns() const noexcept { return silence_ns_; }

  // Called repeatedly with the number of completed writes.
  void operator()(size_t done) {
    const int64_t now = now_ns();
    if (done != done_) {
      silence_ns_ = std::max(silence_ns_, now - last_);
      done_ = done;
      last_ = now;
    }
    if (out_at_ == 0 && done >= pull_after_) {
      port_.command("down");
      is_out_ = true;
      out_at_ = now_ns();
    } else if (is_out_ && now - out_at_ >= kCableOutNs) {
      port_.command("up");
      is_out_ = false;
    }
  }

 private:
  FabricPort port_{"h0/softnic0"};
  size_t pull_after_;
  size_t done_ = 0;
  int64_t last_ = now_ns();
  int64_t silence_ns_ = 0;
  int64_t out_at_ = 0;
  bool is_out_ = false;
};

}  // namespace beeline::bench
