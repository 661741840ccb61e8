// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/pace.h"

#include <algorithm>

#include "common/base/clock.h"

namespace beeline::perf {
namespace {

constexpr double kMostRounds = 50e6;  // in a portion
constexpr double kFirstPortion = 1.0 / 8;
// Without this, the last portion of most runs would have only one or two rounds.
constexpr double kMargin = 1.02;

}  // namespace

std::uint64_t next_portion(double wanted_seconds, RoundsSoFar so_far, double expected_seconds) {
  const double left = wanted_seconds - so_far.seconds;
  if (so_far.count > 0 && left <= 0) return 0;
  const bool is_first = so_far.count == 0;
  const double each =
      is_first ? expected_seconds : so_far.seconds / static_cast<double>(so_far.count);
  const double portion =
      is_first ? wanted_seconds * kFirstPortion : std::min(left * kMargin, so_far.seconds);
  return static_cast<std::uint64_t>(std::clamp(portion / std::max(each, 1e-9), 1.0, kMostRounds));
}

std::uint64_t warm_up_rounds(const Options& options, std::uint64_t usual) {
  return std::max<std::uint64_t>(options.warm_up.value_or(usual), 1);
}

std::uint64_t Pace::choose() const {
  const Options& options = rank_.options();
  if (options.iterations > 0) return options.iterations - rounds_;
  const double seconds = static_cast<double>(now_ns() - started_ns_) / 1e9;
  return next_portion(seconds_of(options), {.count = rounds_, .seconds = seconds},
                      expected_ns_ / 1e9);
}

Outcome<std::uint64_t> Pace::next() {
  if (started_ns_ == 0) started_ns_ = now_ns();
  const std::uint64_t portion =
      BL_TRY(rank_.team().broadcast_from_rank_0("choice of iterations", choose()));
  rounds_ += portion;
  return portion;
}

}  // namespace beeline::perf
