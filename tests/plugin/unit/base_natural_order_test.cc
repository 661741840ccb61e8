// SPDX-License-Identifier: Apache-2.0
//
// natural_less(): the order of device names.
#include "common/base/natural_order.h"

#include "tests/support/catch.h"

using namespace beeline;

TEST_CASE("natural order: names compare with their numbers", "[unit][base]") {
  CHECK(natural_less("mlx5_2", "mlx5_10"));
  CHECK_FALSE(natural_less("mlx5_10", "mlx5_2"));
  CHECK(natural_less("mlx4_9", "mlx5_0"));
  CHECK(natural_less("eth", "eth0"));
  CHECK(natural_less("a01", "a1"));
  CHECK_FALSE(natural_less("a1", "a01"));
  CHECK_FALSE(natural_less("same", "same"));
}
