// SPDX-License-Identifier: Apache-2.0
//
// How many rounds a pattern measures: --iters, or as many as --seconds takes. They come in portions
// whose number follows from the time that those before them took. A warm-up alone would not do: its
// rounds may be several times slower than what follows.
#pragma once

#include <cstdint>

#include "tools/perf/rank.h"

namespace beeline::perf {

struct RoundsSoFar {
  std::uint64_t count = 0;
  double seconds = 0;  // since the first of them, with all that was done between them
};

// The size of the next portion; 0 once `so_far` has lasted `wanted_seconds`. `expected_seconds` is
// what a round is thought to take as long as there was none. No portion takes longer than all
// before it together, so that a bad guess costs little.
std::uint64_t next_portion(double wanted_seconds, RoundsSoFar so_far, double expected_seconds);

class Pace {
 public:
  // `expected_ns` for a round, by this rank's clock.
  Pace(Rank& rank, double expected_ns) : rank_(rank), expected_ns_(expected_ns) {}

  // The next portion, 0 when it is enough. Rank 0 decides for all, and all call it together.
  tools::Outcome<std::uint64_t> next();
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
