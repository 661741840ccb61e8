// SPDX-License-Identifier: Apache-2.0
//
// Tells what an end of a comm waits for, from outside the thread that moves its data. That thread
// does nothing for it while data moves. When the counters stand still, the control thread sets a
// bit that makes the comm's next call take its slow function, where it clears the bit. So the
// control thread learns whether the application makes calls at all.
//
// There is no clock in here. Threads: the control thread.
#pragma once

#include <cstdint>

#include "common/base/clock.h"
#include "plugin/connect/comm/connection.h"
#include "plugin/connect/comm/waiting.h"

namespace beeline {

class WaitWatch {
 public:
  // After a longer time between two looks, the process was stopped, and what was seen before does
  // not count.
  static constexpr std::int64_t kMostBetweenLooksNs = 10 * kNsPerSec;
  // An application that has made no call for so long counts as one that makes none. A shorter time
  // would be wrong on a busy machine, where a thread that always calls may not run for a second.
  static constexpr std::int64_t kSilentNs = 3 * kNsPerSec;

  struct Sight {
    std::uint64_t progress = 0;  // grows whenever this end or its peer does anything
    std::uint64_t requests = 0;  // that are open
    bool is_answered = false;    // a call was made since the last look, if that said must_ask()
    std::uint64_t requests_then = 0;  // that were open, besides what the call itself began
    bool has_path = true;             // at that time
  };

  explicit WaitWatch(Role role) noexcept : role_(role) {}

  Waiting look(const Sight& sight, std::int64_t now_ns) noexcept;
  // Whether the next call is to answer.
  bool must_ask() const noexcept { return must_ask_; }

 private:
  Waiting waiting(Wait what, std::uint64_t requests, std::int64_t since_ns) noexcept;
  Wait judge_called(const Sight& sight) const noexcept;

  Role role_;
  bool must_ask_ = false;
  Waiting last_ = {};
  std::uint64_t progress_ = 0;
  std::int64_t looked_ns_ = 0;
  std::int64_t silent_since_ns_ = 0;  // no call was seen
};

}  // namespace beeline
