// SPDX-License-Identifier: Apache-2.0
#include "common/base/finding.h"

#include "tests/support/catch.h"

namespace beeline {
namespace {

TEST_CASE("finding: its text has the fact, then the reason, then the fix", "[unit][base]") {
  Finding finding = {.id = "x", .fact = "mlx5_0 port 1 is DOWN"};
  CHECK(describe(finding) == "mlx5_0 port 1 is DOWN");
  finding.fix = "check the cable";
  CHECK(describe(finding) == "mlx5_0 port 1 is DOWN. To fix it: check the cable");
  finding.why = "it is not used";
  CHECK(describe(finding) == "mlx5_0 port 1 is DOWN; it is not used. To fix it: check the cable");
  finding.command = "ip link set eth0 up";
  CHECK(describe(finding) ==
        "mlx5_0 port 1 is DOWN; it is not used. To fix it: ip link set eth0 up; check the cable");
}

TEST_CASE("finding: each severity has a word", "[unit][base]") {
  CHECK(std::string(to_string(Severity::kOk)) == "ok");
  CHECK(std::string(to_string(Severity::kUnknown)) == "unknown");
  CHECK(std::string(to_string(Severity::kNote)) == "note");
  CHECK(std::string(to_string(Severity::kWarning)) == "warning");
  CHECK(std::string(to_string(Severity::kFailure)) == "failure");
}

}  // namespace
}  // namespace beeline
