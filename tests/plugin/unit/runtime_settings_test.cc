// SPDX-License-Identifier: Apache-2.0
//
// Settings that cannot be used give a warning; defaults do not.
#include "plugin/runtime/settings.h"

#include "tests/support/catch.h"
#include "tests/support/found.h"

namespace beeline {
namespace {

const Environ kNoVariables({});

TEST_CASE("settings: the defaults give no warning", "[unit][runtime]") {
  CHECK(check_settings(Config{}, kNoVariables).empty());
}

TEST_CASE("settings: a folder that cannot be used is named with its variable", "[unit][runtime]") {
  Config config;
  config.stats_dir = "/nope/of/course";
  config.sysfs_root = "/proc/self/exe";  // a file
  const test::Found found(check_settings(config, kNoVariables));
  INFO(found.all_text());
  CHECK(found.size() == 2);
  CHECK(found.has("folder-unusable", Severity::kWarning, "BEELINE_STATS_DIR"));
  CHECK(found.has("folder-unusable", Severity::kWarning, "BEELINE_SYSFS_ROOT"));
  CHECK(found.has("BEELINE_STATS_DIR=/nope/of/course cannot be used: No such file or directory; "));
  CHECK(found.has("BEELINE_SYSFS_ROOT=/proc/self/exe cannot be used: Not a directory; "));
  config.stats = false;
  CHECK(check_settings(config, kNoVariables).size() == 1);
}

TEST_CASE("settings: an address range that is not understood is a warning", "[unit][runtime]") {
  Config config;
  config.addr_range = "10.1.0.0/99";
  const test::Found found(check_settings(config, kNoVariables));
  CHECK(found.has("address-range-not-understood", Severity::kWarning, "ADDR_RANGE"));
  CHECK(found.has("ADDR_RANGE is not used: \"10.1.0.0/99\": the prefix length must be 0 to 32"));
}

TEST_CASE("settings: more queue pairs than a connection can have are a note", "[unit][runtime]") {
  Config config;
  config.qps_per_connection = 8;
  CHECK(check_settings(config, kNoVariables).empty());
  config.qps_per_connection = 128;
  const test::Found found(check_settings(config, kNoVariables));
  CHECK(found.size() == 1);
  CHECK(found.has("queue-pairs-cut", Severity::kNote, "QPS_PER_CONNECTION"));
  CHECK(found.has("QPS_PER_CONNECTION=128: 8 are used, because a connection has at most 8 queue"));
}

TEST_CASE("settings: a timeout with which a dead path is noticed late is a warning with the time",
          "[unit][runtime]") {
  const Environ environ({"NCCL_IB_TIMEOUT=22"});
  Config config;
  config.timeout = 19;
  CHECK(check_settings(config, environ).empty());
  config.timeout = 22;
  const test::Found found(check_settings(config, environ));
  CHECK(found.size() == 1);
  CHECK(found.has("timeout-long", Severity::kWarning, "NCCL_IB_TIMEOUT"));
  CHECK(found.has("NCCL_IB_TIMEOUT=22: a device reports a dead path only after 137 to 549 s"));
  CHECK(found.has("unset NCCL_IB_TIMEOUT, or"));
  const Environ both({"NCCL_IB_TIMEOUT=20", "BEELINE_TIMEOUT=22"});
  CHECK(test::Found(check_settings(config, both)).has("BEELINE_TIMEOUT=22: a device reports"));
  config.timeout = 20;
  CHECK(test::Found(check_settings(config, environ)).has("after 34 to 137 s"));
  config.stall_timeout_ns = 5 * kNsPerSec;  // that long at most
  CHECK(check_settings(config, environ).empty());
  config.stall_timeout_ns = 0;
  config.recovery = false;  // 20 is the default then
  CHECK(check_settings(config, environ).empty());
}

TEST_CASE("settings: a folder that can be used gives no warning", "[unit][runtime]") {
  Config config;
  config.stats_dir = "/tmp";
  config.sysfs_root = "/proc";
  CHECK(check_settings(config, kNoVariables).empty());
}

}  // namespace
}  // namespace beeline
