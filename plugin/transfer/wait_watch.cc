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
  const Wait what = judge(sight);
  must_ask_ = true;
  if (what == Wait::kNothing) return last_ = {};
  if (last_.what == Wait::kNothing) last_.since_ns = now_ns;
  last_.what = what;
  last_.requests = sight.is_answered ? sight.requests_then : sight.requests;
  last_.has_moved = false;
  return last_;
}

Wait WaitWatch::judge(const Sight& sight) const noexcept {
  if (!must_ask_) return Wait::kNothing;  // known after the next look
  if (sight.is_answered) return judge_called(sight);
  return sight.requests != 0 ? Wait::kTest : Wait::kNothing;
}

Wait WaitWatch::judge_called(const Sight& sight) const noexcept {
  if (!sight.has_path) return Wait::kPath;
  const bool has_requests = sight.requests_then != 0;
  if (role_ == Role::kReceive) return has_requests ? Wait::kData : Wait::kNothing;
  // Without open requests, the call was an isend that had no credit.
  return has_requests ? Wait::kAcknowledgment : Wait::kCredit;
}

}  // namespace beeline
