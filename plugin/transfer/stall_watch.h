// SPDX-License-Identifier: Apache-2.0
//
// Notices that nothing moves although something should. A device gives up by itself after so many
// retries and says so; soft ones may be told to retry for ever, and a broken one says nothing.
//
// It costs nothing while data moves: one store for what is posted or completes, one addition for a
// test that finds nothing, and a look at the clock for one in kLooks of those.
#pragma once

#include <cstdint>

namespace beeline {

class StallWatch {
 public:
  enum class Verdict : std::uint8_t {
    kCalm,     // something has moved, or the quiet is short
    kQuiet,    // long enough to ask whether the path still works
    kStalled,  // as long as the limit
  };

  static constexpr std::uint32_t kLooks = 64;

  // 0: never stalled.
  explicit StallWatch(std::int64_t limit_ns) noexcept : limit_ns_(limit_ns) {}

  void moved() noexcept { moved_ = true; }
  // By a test that finds nothing. True: time to judge.
  bool looks_in_vain() noexcept { return (++looks_ % kLooks) == 0; }
  bool is_due() const noexcept { return looks_ % kLooks == 0; }

  Verdict judge(std::int64_t now_ns) noexcept {
    // A process that was stopped, or had nothing to test, cannot tell what it did not see.
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
  // The last time at which data is known to have moved, by the last check.
  std::int64_t quiet_since_ns() const noexcept { return quiet_since_ns_; }

 private:
  std::int64_t limit_ns_;
  std::int64_t quiet_since_ns_ = 0;
  std::int64_t judged_ns_ = 0;
  std::uint32_t looks_ = 0;
  bool moved_ = true;
};

}  // namespace beeline
