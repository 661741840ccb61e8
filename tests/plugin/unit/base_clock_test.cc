// SPDX-License-Identifier: Apache-2.0
//
// now_ns(): monotonic, in nanoseconds.
#include "common/base/clock.h"

#include <time.h>

#include "tests/support/catch.h"

namespace beeline {
namespace {

TEST_CASE("clock: never steps back", "[unit][base]") {
  std::int64_t last = now_ns();
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t now = now_ns();
    REQUIRE(now >= last);
    last = now;
  }
}

TEST_CASE("clock: agrees with the kernel's monotonic seconds", "[unit][base]") {
  timespec before{};
  timespec after{};
  REQUIRE(clock_gettime(CLOCK_MONOTONIC, &before) == 0);
  const std::int64_t now = now_ns();
  REQUIRE(clock_gettime(CLOCK_MONOTONIC, &after) == 0);
  CHECK(now / kNsPerSec >= before.tv_sec);
  CHECK(now / kNsPerSec <= after.tv_sec);
}

}  // namespace
}  // namespace beeline
