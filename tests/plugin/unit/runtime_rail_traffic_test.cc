// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/rail_traffic.h"
#include "tests/support/catch.h"

namespace beeline::test {

TEST_CASE("rail traffic: shares and rates of each rail", "[unit][runtime]") {
  const RailTraffic::Shares shares = {
      {"mlx5_0 port 1", {.bytes = 20'000'000'000, .weighted_rate = 0.4 * 2e10}},
      {"mlx5_1 port 1", {.bytes = 10'000'000'000, .weighted_rate = 25.0 * 1e10}}};
  CHECK(RailTraffic::text("sent", shares) ==
        "sent 30.0 GB: mlx5_0 port 1 67 % at 0.40 GB/s, mlx5_1 port 1 33 % at 25.0 GB/s");
}

TEST_CASE("rail traffic: a receiver knows no rates", "[unit][runtime]") {
  const RailTraffic::Shares shares = {{"mlx5_0 port 1", {.bytes = 1'500'000'000}}};
  CHECK(RailTraffic::text("received", shares) == "received 1.50 GB: mlx5_0 port 1 100 %");
}

TEST_CASE("rail traffic: without data there is no text", "[unit][runtime]") {
  CHECK(RailTraffic::text("sent", {}).empty());
}

}  // namespace beeline::test
