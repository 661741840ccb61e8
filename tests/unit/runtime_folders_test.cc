// SPDX-License-Identifier: Apache-2.0
//
// A folder that a person has named and that is not there is told; what nobody named is not.
#include "plugin/runtime/folders.h"

#include "tests/support/catch.h"

namespace beeline {
namespace {

TEST_CASE("folders: a default folder causes no complaint", "[unit][runtime]") {
  CHECK(folder_complaints(Config{}).empty());
}

TEST_CASE("folders: a missing one is named, with its variable", "[unit][runtime]") {
  Config config;
  config.stats_dir = "/nope/of/course";
  config.sysfs_root = "/proc/self/exe";  // a file
  const auto complaints = folder_complaints(config);
  REQUIRE(complaints.size() == 2);
  CHECK(
      complaints[0].starts_with("BEELINE_STATS_DIR=/nope/of/course cannot be used: No such file"));
  CHECK(complaints[1].starts_with("BEELINE_SYSFS_ROOT=/proc/self/exe cannot be used: Not a dir"));
  config.stats = false;
  CHECK(folder_complaints(config).size() == 1);
}

TEST_CASE("folders: one that can be used is fine", "[unit][runtime]") {
  Config config;
  config.stats_dir = "/tmp";
  config.sysfs_root = "/proc";
  CHECK(folder_complaints(config).empty());
}

}  // namespace
}  // namespace beeline
