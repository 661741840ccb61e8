// SPDX-License-Identifier: Apache-2.0
//
// How many rounds a pattern measures: --iters, or as many as --seconds takes. Rounds are run in
// portions, and the size of each portion is computed from the time that earlier ones took. A
// warm-up alone is not enough for that, because its rounds may be several times slower than later
// ones.
#pragma once

#include <cstdint>

#include "tools/perf/rank.h"

namespace beeline::perf {

struct RoundsSoFar {
  std::uint64_t count = 0;
  double seconds = 0;  // since the first of them, including the work between them
};

// The size of the next portion; 0 once `so_far` has lasted `wanted_seconds`. `expected_seconds` is
// the estimate for a round before the first one has been measured. No portion takes longer than all
// earlier ones together, so that a wrong estimate costs little time.
std::uint64_t next_portion(double wanted_seconds, RoundsSoFar so_far, double expected_seconds);

// The iterations before the measured ones, from which the time of one is estimated: -w, or as many
// as the pattern usually takes. Always one or more.
std::uint64_t warm_up_rounds(const Options& options, std::uint64_t usual);

class Pace {
 public:
  // `expected_ns` for a round, by this rank's clock.
  Pace(Rank& rank, double expected_ns) : rank_(rank), expected_ns_(expected_ns) {}

  // Returns the next portion, or 0 at the end. Rank 0 decides for all ranks, and all ranks call it
  // together.
  Outcome<std::uint64_t> next();
  // Rounds of all portions so far.
  std::uint64_t rounds() const noexcept { return rounds_; }

 private:
  std::uint64_t choose() const;

  Rank& rank_;
  const double expected_ns_;
  std::int64_t started_ns_ = 0;
  std::uint64_t rounds_ = 0;
};

}  // namespace beeline::perf
