// SPDX-License-Identifier: Apache-2.0
//
// When a device that is gone is looked for.
#include "plugin/connect/path/port_watch.h"

#include "tests/support/catch.h"

using namespace beeline;

TEST_CASE("reopen delays: a device that fails as soon as it is back is opened less often",
          "[unit][connect]") {
  ReopenDelays delays;
  std::int64_t now = 0;
  CHECK(delays.after_failure("mlx5_0", now) == ReopenDelays::kFirstNs);
  std::int64_t expected = ReopenDelays::kFirstNs;
  for (int i = 0; i < 20; ++i) {
    delays.opened("mlx5_0", now += kNsPerSec);
    expected = std::min(2 * expected, ReopenDelays::kLongestNs);
    CHECK(delays.after_failure("mlx5_0", now += ReopenDelays::kBriefLifeNs - 1) == expected);
  }
  CHECK(expected == ReopenDelays::kLongestNs);
  CHECK(delays.after_failure("mlx5_1", now) == ReopenDelays::kFirstNs);

  delays.opened("mlx5_0", now);
  now += ReopenDelays::kBriefLifeNs;
  CHECK(delays.after_failure("mlx5_0", now) == ReopenDelays::kFirstNs);
}
