// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/wait_watch.h"

#include <utility>

namespace beeline {

Waiting WaitWatch::look(const Sight& sight, std::int64_t now_ns) noexcept {
  const bool was_away = now_ns - looked_ns_ > kMostBetweenLooksNs;
  const bool has_moved = std::exchange(progress_, sight.progress) != sight.progress;
  looked_ns_ = now_ns;
  if (has_moved || was_away) {
    must_ask_ = false;
    last_ = {};
    last_.has_moved = has_moved;
    return last_;
  }
  const bool was_asked = std::exchange(must_ask_, true);
  if (!was_asked || sight.is_answered) silent_since_ns_ = now_ns;
  if (!was_asked) return last_ = {};  // known after the next look
  if (sight.is_answered) return waiting(judge_called(sight), sight.requests_then, now_ns);
  if (now_ns - silent_since_ns_ < kSilentNs) return last_;
  return waiting(sight.requests != 0 ? Wait::kTest : Wait::kNothing, sight.requests,
                 silent_since_ns_);
}

// Another reason does not begin a new wait.
Waiting WaitWatch::waiting(Wait what, std::uint64_t requests, std::int64_t since_ns) noexcept {
  if (what == Wait::kNothing) return last_ = {};
  if (last_.what != Wait::kNothing) since_ns = last_.since_ns;
  return last_ = {.what = what, .since_ns = since_ns, .requests = requests};
}

Wait WaitWatch::judge_called(const Sight& sight) const noexcept {
  if (!sight.has_path) return Wait::kPath;
  const bool has_requests = sight.requests_then != 0;
  if (role_ == Role::kReceive) return has_requests ? Wait::kData : Wait::kNothing;
  // Without open requests, the call was an isend that had no credit.
  return has_requests ? Wait::kAcknowledgment : Wait::kCredit;
}

}  // namespace beeline
