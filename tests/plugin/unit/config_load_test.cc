// SPDX-License-Identifier: Apache-2.0
//
// Loading the configuration: which variable takes precedence, and what is logged.
#include "plugin/config/config.h"

#include <cstdio>
#include <cstdlib>
#include <set>

#include "plugin/config/nearest.h"
#include "tests/support/catch.h"
#include "tests/support/found.h"

namespace beeline {
namespace {

using test::Found;

Config load(const std::vector<std::string_view>& assignments, Found* found = nullptr) {
  const LoadedConfig loaded = load_config(Environ(assignments));
  if (found != nullptr) found->add(loaded.findings);
  return loaded.config;
}

TEST_CASE("config: an empty environment gives the defaults and says nothing", "[unit][config]") {
  Found found;
  const Config config = load({}, &found);
  CHECK(config.gid_index == -1);
  CHECK(config.timeout == 0);
  CHECK(config.retry_cnt == 7);
  CHECK(config.ib_disable == false);
  CHECK(config.ece == true);
  CHECK(config.ar_threshold == 8192);
  CHECK(config.addr_family == IpFamily::kAny);
  CHECK(config.relaxed_ordering == std::nullopt);
  CHECK(config.peer_timeout_ns == 20 * kNsPerSec);
  CHECK(config.sysfs_root == "/sys");
  CHECK(found.all_text().empty());
}

TEST_CASE("config: a BEELINE_ variable wins over NCCL's, and NCCL's over the default",
          "[unit][config]") {
  CHECK(load({"NCCL_IB_GID_INDEX=3"}).gid_index == 3);
  CHECK(load({"NCCL_IB_GID_INDEX=3", "BEELINE_GID_INDEX=4"}).gid_index == 4);
  CHECK(load({"BEELINE_GID_INDEX=-1", "NCCL_IB_GID_INDEX=3"}).gid_index == -1);
  // Turns off NCCL's own transport alone.
  CHECK_FALSE(load({"NCCL_IB_DISABLE=1", "BEELINE_IB_DISABLE=0"}).ib_disable);
}

TEST_CASE("config: a variable set to nothing counts as not set", "[unit][config]") {
  Found found;
  CHECK(load({"BEELINE_GID_INDEX=", "NCCL_IB_GID_INDEX=3"}, &found).gid_index == 3);
  CHECK(load({"NCCL_IB_GID_INDEX="}, &found).gid_index == -1);
  CHECK(found.count(Severity::kWarning) == 0);
}

TEST_CASE("config: each value that was set is a note that names its variable", "[unit][config]") {
  Found found;
  load({"NCCL_IB_GID_INDEX=3", "BEELINE_PEER_TIMEOUT=1500ms", "NCCL_IB_HCA= =mlx5_0 "}, &found);
  REQUIRE(found.size() == 3);
  CHECK(found.has("GID_INDEX=3 (from NCCL_IB_GID_INDEX)"));
  CHECK(found.has("PEER_TIMEOUT=1500ms (from BEELINE_PEER_TIMEOUT)"));
  CHECK(found.has("HCA==mlx5_0 (from NCCL_IB_HCA)"));
  CHECK(found.count(Severity::kNote) == 3);
  CHECK(found.has("setting", Severity::kNote, "GID_INDEX"));
}

TEST_CASE("config: variables that only NCCL's own transport reads are named in one line",
          "[unit][config]") {
  Found found;
  load(
      {"NCCL_IB_WARN_RAIL_LOCAL=1", "NCCL_IB_MERGE_VFS=", "NCCL_IB_FIFO_TC=106", "NCCL_DEBUG=INFO"},
      &found);
  REQUIRE(found.size() == 1);
  CHECK(found.has("settings-without-effect", Severity::kNote, ""));
  CHECK(found.has("set, and without effect here: NCCL_IB_FIFO_TC, NCCL_IB_WARN_RAIL_LOCAL"));
}

// A new row of params.def may honor one of them.
TEST_CASE("config: no variable is both honored and named as without effect", "[unit][config]") {
  for (const ParamText& row : param_texts()) {
    if (row.honors.empty()) continue;
    const std::string assignment = std::string(row.honors) + "=1";
    Found found;
    load({assignment}, &found);
    INFO(assignment);
    CHECK_FALSE(found.has("without effect"));
    CHECK_FALSE(found.has("has no effect"));
  }
}

TEST_CASE("config: a name of NCCL's transport that it is not known to have is a note",
          "[unit][config]") {
  Found found;
  load({"NCCL_IB_GID=3", "NCCL_IB_FIFO_TCC=1", "NCCL_IB_WOMBAT=1", "NCCL_IB_=1", "NCCL_IB_QQ="},
       &found);
  INFO(found.all_text());
  CHECK(found.count(Severity::kWarning) == 0);
  CHECK(found.has("setting-unknown", Severity::kNote, "NCCL_IB_GID"));
  CHECK(
      found.has("NCCL_IB_GID has no effect here, and NCCL is not known to have it; did you mean "
                "NCCL_IB_GID_INDEX?"));
  CHECK(found.has("did you mean NCCL_IB_FIFO_TC?"));
  CHECK(found.has("NCCL_IB_WOMBAT has no effect here"));
  CHECK(found.count("did you mean") == 2);
  CHECK(found.size() == 4);
}

TEST_CASE("config: a name one letter away from one that is honored is a warning",
          "[unit][config]") {
  Found found;
  load({"NCCL_IB_GID_INDEXX=3", "NCCL_IB_HAC=mlx5_0", "NCCL_IB_TIMOUT=22"}, &found);
  INFO(found.all_text());
  CHECK(found.count(Severity::kWarning) == 3);
  CHECK(found.has("setting-unknown", Severity::kWarning, "NCCL_IB_GID_INDEXX"));
  CHECK(found.has("did you mean NCCL_IB_GID_INDEX?"));
  CHECK(found.has("did you mean NCCL_IB_HCA?"));
  CHECK(found.has("did you mean NCCL_IB_TIMEOUT?"));
}

TEST_CASE("config: a value out of range is warned about, and the default used", "[unit][config]") {
  Found found;
  CHECK(load({"BEELINE_TIMEOUT=99"}, &found).timeout == 0);
  CHECK(load({"NCCL_IB_RETRY_CNT=15"}, &found).retry_cnt == 7);
  REQUIRE(found.count(Severity::kWarning) == 2);
  CHECK(found.has("setting-out-of-range", Severity::kWarning, "BEELINE_TIMEOUT"));
  CHECK(found.has("BEELINE_TIMEOUT=99 is out of range (0 to 31); using 0"));
  CHECK(found.has("NCCL_IB_RETRY_CNT=15 is out of range (0 to 7); using 7"));
}

TEST_CASE("config: a value that cannot be read is warned about, and the default used",
          "[unit][config]") {
  Found found;
  CHECK(load({"BEELINE_PEER_TIMEOUT=20"}, &found).peer_timeout_ns == 20 * kNsPerSec);
  CHECK(load({"NCCL_SOCKET_FAMILY=INET"}, &found).socket_family == IpFamily::kAny);
  CHECK(found.has("setting-not-understood", Severity::kWarning, "BEELINE_PEER_TIMEOUT"));
  CHECK(found.has("BEELINE_PEER_TIMEOUT=20 is not understood (1s to 3600s); using 20s"));
  CHECK(
      found.has("NCCL_SOCKET_FAMILY=INET is not understood (any, AF_INET or AF_INET6); using any"));
}

TEST_CASE("config: an invalid BEELINE_ value does not fall back to NCCL's", "[unit][config]") {
  CHECK(load({"BEELINE_TIMEOUT=99", "NCCL_IB_TIMEOUT=14"}).timeout == 0);
}

TEST_CASE("config: an unknown name is warned about with the nearest", "[unit][config]") {
  Found found;
  load({"BEELINE_TIMOUT=22", "BEELINE_IB_GID_INDEX=3", "BEELINE_WOMBAT=1", "BEELINE_=1",
        "NCCL_WOMBAT=1", "BEELINES=1"},
       &found);
  CHECK(found.count(Severity::kWarning) == 4);
  CHECK(found.has("BEELINE_TIMOUT is no parameter of this version; did you mean BEELINE_TIMEOUT?"));
  CHECK(found.has("setting-unknown", Severity::kWarning, "BEELINE_TIMOUT"));
  CHECK(found.has("did you mean BEELINE_GID_INDEX?"));
  CHECK(found.has("BEELINE_WOMBAT is no parameter of this version"));
  CHECK(found.count("did you mean") == 2);
}

TEST_CASE("config: of two variables with one name the first counts", "[unit][config]") {
  CHECK(load({"BEELINE_SL=1", "BEELINE_SL=2"}).sl == 1);
}

TEST_CASE("config: a line without an equals sign is no variable", "[unit][config]") {
  Found found;
  load({"BEELINE_WOMBAT", ""}, &found);
  CHECK(found.all_text().empty());
}

TEST_CASE("config: the process's own environment is read", "[unit][config]") {
  const Environ environ = Environ::of_process();
  const char* path = std::getenv("PATH");
  REQUIRE(path != nullptr);
  CHECK(environ.get("PATH") == path);
}

TEST_CASE("config: a secret of the commands is no part of the environment", "[unit][config]") {
  ::setenv("BEELINE_RENDEZVOUS_TOKEN", "secret", 1);
  ::setenv("BEELINE_RENDEZVOUS_TOKEN2", "another", 1);
  const Environ environ = Environ::of_process();
  CHECK_FALSE(environ.get("BEELINE_RENDEZVOUS_TOKEN"));
  CHECK(environ.get("BEELINE_RENDEZVOUS_TOKEN2") == "another");
  ::unsetenv("BEELINE_RENDEZVOUS_TOKEN");
  ::unsetenv("BEELINE_RENDEZVOUS_TOKEN2");
}

TEST_CASE("config: every parameter can be set, and its default written out is accepted",
          "[unit][config]") {
  for (const ParamText& row : param_texts()) {
    if (row.default_value.empty()) continue;
    const std::string assignment = "BEELINE_" + std::string(row.name) + "=" + row.default_value;
    Found found;
    load({assignment}, &found);
    INFO(assignment << "\n" << found.all_text());
    CHECK(found.size() == 1);
    CHECK(found.has("(from BEELINE_" + std::string(row.name) + ")"));
  }
}

TEST_CASE("config: no name is used twice", "[unit][config]") {
  std::set<std::string_view> names;
  for (const ParamText& row : param_texts()) {
    INFO(std::string(row.name));
    CHECK(names.insert(row.name).second);
    CHECK((row.honors.empty() || names.insert(row.honors).second));
  }
}

TEST_CASE("config: every parameter is in a group, and groups are not split", "[unit][config]") {
  std::set<std::string_view> groups;
  std::string_view group;
  for (const ParamText& row : param_texts()) {
    INFO(std::string(row.name));
    CHECK_FALSE(row.group.empty());
    CHECK_FALSE(row.summary.empty());
    if (row.group != group) CHECK(groups.insert(row.group).second);
    group = row.group;
  }
}

TEST_CASE("nearest: a typing error finds the name, another word does not", "[unit][config]") {
  const std::vector<std::string_view> known{"TIMEOUT", "SL", "STATS_DIR"};
  CHECK(nearest("TIMEOUTS", known) == "TIMEOUT");
  CHECK(nearest("TIMEUOT", known) == "TIMEOUT");
  CHECK(nearest("STAT_DIR", known) == "STATS_DIR");
  CHECK(nearest("LS", known) == "SL");
  CHECK(nearest("", known).empty());
  CHECK(nearest("XY", known).empty());
  CHECK(edits_between("TIMEUOT", "TIMEOUT") == 1);
  CHECK(edits_between("", "SL") == 2);
  CHECK(nearest("ELEPHANT", known).empty());
}

TEST_CASE("config: docs/parameters.md matches the table", "[unit][config]") {
  std::FILE* file = std::fopen(BL_PARAMETERS_MD, "r");
  REQUIRE(file != nullptr);
  std::string committed;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) {
    committed.push_back(static_cast<char>(c));
  }
  std::fclose(file);
  INFO("\"ninja parameters\" writes it anew");
  CHECK(committed == params_markdown());
}

}  // namespace
}  // namespace beeline
