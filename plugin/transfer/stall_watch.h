// SPDX-License-Identifier: Apache-2.0
//
// Detects that nothing moves although a request is outstanding. Most devices give up after a
// number of retries and report it. Software devices may be told to retry for ever, and a broken
// device reports nothing.
//
// Cost while data moves: one store when a work request is posted or completes, one addition for a
// test that finds nothing, and a look at the clock for every kTestsPerLook of those.
#pragma once

#include <cstdint>

namespace beeline {

class StallWatch {
 public:
  enum class Verdict : std::uint8_t {
    kCalm,     // something has moved, or the quiet is short
    kQuiet,    // long enough to probe the path
    kStalled,  // as long as the limit
  };

  static constexpr std::uint32_t kTestsPerLook = 64;

  // With 0 it is never stalled.
  explicit StallWatch(std::int64_t limit_ns) noexcept : limit_ns_(limit_ns) {}

  void moved() noexcept { moved_ = true; }
  // By a test that leaves its request unfinished. True: time to judge.
  bool count_empty_test() noexcept {
    if (--tests_to_look_ != 0) [[likely]]
      return false;
    tests_to_look_ = kTestsPerLook;
    return true;
  }

  Verdict judge(std::int64_t now_ns) noexcept {
    // A process that was stopped, or that tested nothing, starts to measure anew.
    const bool was_away = limit_ns_ != 0 && now_ns - judged_ns_ > limit_ns_ / 4;
    judged_ns_ = now_ns;
    if (moved_ || was_away) {
      moved_ = false;
      quiet_since_ns_ = now_ns;
    }
    if (limit_ns_ == 0 || now_ns - quiet_since_ns_ < limit_ns_ / 4) return Verdict::kCalm;
    return now_ns - quiet_since_ns_ < limit_ns_ ? Verdict::kQuiet : Verdict::kStalled;
  }

  std::int64_t limit_ns() const noexcept { return limit_ns_; }
  // Since when nothing has moved, as far as judge() knows.
  std::int64_t quiet_since_ns() const noexcept { return quiet_since_ns_; }
  // Since when a thread has waited in vain. If something has moved since the last look, or nobody
  // has waited, that is now.
  std::int64_t waits_since_ns(std::int64_t now_ns) const noexcept {
    return moved_ || now_ns - judged_ns_ > kFreshNs ? now_ns : quiet_since_ns_;
  }

 private:
  // A thread that waits judges at least this often.
  static constexpr std::int64_t kFreshNs = 100'000'000;

  std::uint32_t tests_to_look_ = kTestsPerLook;
  bool moved_ = true;
  std::int64_t limit_ns_;
  std::int64_t quiet_since_ns_ = 0;
  std::int64_t judged_ns_ = 0;
};

}  // namespace beeline
