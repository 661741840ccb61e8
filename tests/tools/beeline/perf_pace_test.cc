// SPDX-License-Identifier: Apache-2.0
//
// Tests of the number of rounds that --seconds causes.
#include "tests/support/catch.h"
#include "tools/perf/pace.h"

namespace beeline::perf {
namespace {

// Runs portions in which every round takes `each` seconds, until it is enough.
RoundsSoFar run(double wanted, double expected, double each) {
  RoundsSoFar all;
  int portions = 0;
  while (const std::uint64_t portion = next_portion(wanted, all, expected)) {
    all.count += portion;
    all.seconds += each * static_cast<double>(portion);
    REQUIRE(++portions < 100);
  }
  return all;
}

TEST_CASE("pace: the rounds before the measured ones are one or more", "[tools][pace]") {
  Options options;
  CHECK(warm_up_rounds(options, 3) == 3);
  options.warm_up = 20;
  CHECK(warm_up_rounds(options, 3) == 20);
  options.warm_up = 0;
  CHECK(warm_up_rounds(options, 3) == 1);
}

TEST_CASE("pace: the time is used up, whatever the first estimate was", "[tools][pace]") {
  const double expected = GENERATE(0.0, 1e-7, 1e-4, 1e-3, 1e-2, 10.0);
  CAPTURE(expected);
  const RoundsSoFar all = run(10, expected, 1e-3);
  CHECK(all.seconds >= 10);
  if (expected >= 1e-3) CHECK(all.seconds < 10.5);
}

TEST_CASE("pace: a round that takes longer than the time is the only one", "[tools][pace]") {
  CHECK(run(1, 3, 3).count == 1);
  CHECK(run(1, 1e-9, 3).count >= 1);
}

TEST_CASE("pace: a wrong estimate costs at most an eighth of the time", "[tools][pace]") {
  CHECK(next_portion(8, {}, 0.01) == 100);
  CHECK(next_portion(8, {.count = 100, .seconds = 0.1}, 0.01) == 100);
  CHECK(next_portion(8, {.count = 100, .seconds = 8}, 0.01) == 0);
}

}  // namespace
}  // namespace beeline::perf
