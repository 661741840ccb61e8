// SPDX-License-Identifier: Apache-2.0
//
// The device filter: every form of its syntax, and invalid filters.
#include "plugin/device/hca_filter.h"

#include <string>

#include "tests/support/catch.h"

namespace beeline {
namespace {

bool admits(const char* filter, const char* ibdev, int port) {
  return judge(parse_hca_filter(filter), ibdev, port).admitted;
}

TEST_CASE("filter: no text admits every device", "[unit][device]") {
  const HcaFilter filter = parse_hca_filter("");
  CHECK(filter.is_empty());
  const HcaVerdict verdict = judge(filter, "mlx5_0", 2);
  CHECK(verdict.admitted);
  CHECK(verdict.rail == -1);
  CHECK(verdict.plane == -1);
  CHECK(parse_hca_filter(" \t").is_empty());
}

TEST_CASE("filter: a prefix of a name is enough", "[unit][device]") {
  CHECK(admits("mlx5", "mlx5_0", 1));
  CHECK(admits("mlx5_1", "mlx5_1", 2));
  CHECK(admits("mlx5_1", "mlx5_10", 1));
  CHECK_FALSE(admits("mlx5_1", "mlx5_0", 1));
  CHECK_FALSE(admits("mlx5_10", "mlx5_1", 1));
}

TEST_CASE("filter: = wants the whole name", "[unit][device]") {
  CHECK(admits("=mlx5_1", "mlx5_1", 1));
  CHECK_FALSE(admits("=mlx5_1", "mlx5_10", 1));
  CHECK_FALSE(admits("=mlx5", "mlx5_1", 1));
}

TEST_CASE("filter: ^ means all but these", "[unit][device]") {
  CHECK_FALSE(admits("^mlx5_1", "mlx5_1", 1));
  CHECK_FALSE(admits("^mlx5_1", "mlx5_11", 1));
  CHECK(admits("^mlx5_1", "mlx5_2", 1));
  CHECK_FALSE(admits("^=mlx5_1", "mlx5_1", 1));
  CHECK(admits("^=mlx5_1", "mlx5_11", 1));
}

TEST_CASE("filter: a port number selects one port", "[unit][device]") {
  CHECK(admits("mlx5_0:2", "mlx5_0", 2));
  CHECK_FALSE(admits("mlx5_0:2", "mlx5_0", 1));
  CHECK(admits("^mlx5_0:2", "mlx5_0", 1));
  CHECK_FALSE(admits("^mlx5_0:2", "mlx5_0", 2));
}

TEST_CASE("filter: a list admits what any part admits", "[unit][device]") {
  const char* const list = "=mlx5_0:1, mlx5_3 ,,ib7:2,";
  CHECK(parse_hca_filter(list).complaints.empty());
  CHECK(admits(list, "mlx5_0", 1));
  CHECK(admits(list, "mlx5_3", 4));
  CHECK(admits(list, "ib7", 2));
  CHECK_FALSE(admits(list, "mlx5_0", 2));
  CHECK_FALSE(admits(list, "mlx5_30", 1));
}

TEST_CASE("filter: rail and plane go to the device", "[unit][device]") {
  const HcaFilter filter = parse_hca_filter("mlx5_0:1:3:1,mlx5_1::4,mlx5_2:::7");
  REQUIRE(filter.complaints.empty());
  CHECK(filter.rules ==
        std::vector<HcaRule>{{"mlx5_0", 1, 3, 1}, {"mlx5_1", -1, 4, -1}, {"mlx5_2", -1, -1, 7}});
  CHECK(judge(filter, "mlx5_0", 1).rail == 3);
  CHECK(judge(filter, "mlx5_0", 1).plane == 1);
  CHECK(judge(filter, "mlx5_1", 2).rail == 4);
  CHECK(judge(filter, "mlx5_1", 2).plane == -1);
  CHECK(judge(filter, "mlx5_2", 1).plane == 7);
}

TEST_CASE("filter: the longest name decides, then a named port, then the first", "[unit][device]") {
  CHECK(judge(parse_hca_filter("mlx5_1:1:3,mlx5_10:1:4"), "mlx5_10", 1).rail == 4);
  CHECK(judge(parse_hca_filter("mlx5_1:1:3,mlx5_10:1:4"), "mlx5_1", 1).rail == 3);
  CHECK(judge(parse_hca_filter("mlx5_1::3,mlx5_1:1:4"), "mlx5_1", 1).rail == 4);
  CHECK(judge(parse_hca_filter("mlx5_1:1:4,mlx5_1::3"), "mlx5_1", 1).rail == 4);
  CHECK(judge(parse_hca_filter("mlx5_1:1:5,mlx5_1:1:6"), "mlx5_1", 1).rail == 5);
}

TEST_CASE("filter: an invalid part is left out, and named", "[unit][device]") {
  for (const char* const bad : {"mlx5_0:one", ":1", "mlx5_0:0", "mlx5_0:256", "mlx5_0:1:-2",
                                "mlx5_0:1:2:3:4", "mlx5_0:1:99999", "mlx5_0:1x"}) {
    CAPTURE(bad);
    const HcaFilter filter = parse_hca_filter(std::string("mlx5_9,") + bad);
    REQUIRE(filter.complaints.size() == 1);
    CHECK(filter.complaints[0].find(bad) != std::string::npos);
    CHECK(filter.rules == std::vector<HcaRule>{{"mlx5_9"}});
  }
}

TEST_CASE("filter: one without a valid part admits no device", "[unit][device]") {
  CHECK_FALSE(admits("mlx5_0:one", "mlx5_0", 1));
  CHECK_FALSE(admits("mlx5_0:one", "mlx5_1", 1));
}

}  // namespace
}  // namespace beeline
