// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/finding_log.h"

#include <vector>

#include "tests/support/catch.h"
#include "tests/support/log_capture.h"

namespace beeline {
namespace {

TEST_CASE("finding log: a warning is WARN, a note is INFO, and what is ok is left out",
          "[unit][runtime]") {
  const test::LogCapture log;
  const std::vector<Finding> findings = {
      {.id = "a", .severity = Severity::kOk, .fact = "the cable is in"},
      {.id = "b", .severity = Severity::kNote, .fact = "the cable is 3 m long"},
      {.id = "c",
       .severity = Severity::kWarning,
       .fact = "100 % of it is bent",
       .fix = "unbend it"},
  };
  log_findings(findings, kLogInit | kLogGraph);
  const auto lines = log.lines();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].level == LogLevel::kInfo);
  CHECK(lines[0].flags == (kLogInit | kLogGraph));
  CHECK(lines[0].text.ends_with(": the cable is 3 m long"));
  CHECK(lines[1].level == LogLevel::kWarn);
  CHECK(lines[1].text.ends_with(": 100 % of it is bent. To fix it: unbend it"));
}

}  // namespace
}  // namespace beeline
