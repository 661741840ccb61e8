// SPDX-License-Identifier: Apache-2.0
//
// Tests that what the processes of several hosts wait for can be saved and looked at together.
#include <filesystem>
#include <fstream>

#include "common/base/clock.h"
#include "tests/support/catch.h"
#include "tools/hang/causes.h"
#include "tools/hang/report.h"
#include "tools/hang/snapshot.h"
#include "tools/hang/words.h"

namespace beeline::hang {
namespace {

constexpr std::int64_t kNowThere = 5000 * kNsPerSec;
constexpr std::int64_t kNowHere = 900 * kNsPerSec;

struct SnapshotFile {
  SnapshotFile() = default;
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;
  ~SnapshotFile() { std::filesystem::remove(path); }
  std::string path = std::filesystem::temp_directory_path() /
                     ("beeline-snapshot-" + std::to_string(now_ns()) + ".json");
};

Outcome<pages::Processes> through_file(const std::string& text) {
  const SnapshotFile file;
  std::ofstream(file.path) << text;
  return read_snapshot(file.path, kNowHere);
}

// Rank 0 on host n0 waits for a receive of rank 1 on n1, which waits for nothing.
pages::Process end_of_pair(std::uint32_t rank) {
  pages::Process process = {.pid = 100,
                            .host = "n" + std::to_string(rank),
                            .rank = rank,
                            .ranks = 2,
                            .job = "48213.0",
                            .identity = rank + 7,
                            .blocked_threads = rank == 0 ? 2U : 0U,
                            .connections = {}};
  SlotView slot = {};
  slot.number = rank + 1;
  slot.peer_number = 2 - rank;
  slot.role = rank == 0 ? SlotRole::kSend : SlotRole::kReceive;
  slot.state = SlotState::kReady;
  slot.device = "r0";
  slot.peer_host = "n" + std::to_string(1 - rank);
  slot.peer_device = "r1:1";
  slot.peer_pid = 100;
  slot.peer_identity = 8 - rank;
  slot.opened_ns = 4000 * kNsPerSec;
  slot.moved_ns = 4970 * kNsPerSec;
  slot.counters[static_cast<std::uint32_t>(Counter::kMessages)] = 40;
  slot.counters[static_cast<std::uint32_t>(Counter::kGrants)] = 50 + rank;
  if (rank == 0) {
    slot.waits_for = Wait::kCredit;
    slot.waits_since_ns = 4980 * kNsPerSec;
    slot.requests = 3;
  }
  process.connections = {slot};
  return process;
}

TEST_CASE("hang, snapshot: the cause is found on another host", "[tools]") {
  pages::Processes all;
  for (const std::uint32_t rank : {0U, 1U}) {
    pages::Processes host;
    host.all = {end_of_pair(rank)};
    if (rank != 0) host.left_out.owners[pages::Reason::kForbidden] = {1};
    const auto read = through_file(snapshot_of(host, kNowThere));
    REQUIRE(read);
    CHECK(read->left_out.count() == rank);
    all.all.push_back(read->all.at(0));
  }
  const SlotView& waiting = all.all[0].connections.at(0);
  CHECK(waiting.waits_since_ns == static_cast<std::uint64_t>(kNowHere - 20 * kNsPerSec));
  CHECK(waiting.moved_ns == static_cast<std::uint64_t>(kNowHere - 30 * kNsPerSec));
  CHECK(waiting[Counter::kMessages] == 40);
  CHECK(all.all[1].connections.at(0)[Counter::kGrants] == 51);
  CHECK(all.all[0].ranks == 2);
  CHECK(all.all[0].job == "48213.0");
  CHECK(all.all[0].blocked_threads == 2);
  CHECK(all.all[1].identity == 8);
  const Analysis analysis = find_causes(all.all, kNowHere, kNsPerSec);
  REQUIRE(analysis.causes.size() == 1);
  CHECK(analysis.causes[0].reason == Reason::kNoReceive);
  CHECK(analysis.causes[0].process == 1);
  const std::vector<JobReport> reports = reports_of(all.all, kNowHere, kNsPerSec);
  const std::string text = text_of(reports, kNowHere, {.width = 200});
  CHECK(text.find("CAUSE    rank 1 (pid 100 on n1) has posted no receive for 20 s") !=
        std::string::npos);
  CHECK(text_of(reports, kNowHere, {.in_color = true}).find("\n\033[31mCAUSE\033[0m    rank 1") !=
        std::string::npos);
  CHECK(text.find("next  on n1: py-spy dump --pid 100") != std::string::npos);
}

TEST_CASE("hang, snapshot: listeners and failed connections are kept", "[tools]") {
  pages::Process process = end_of_pair(1);
  process.life = pages::Life::kStopped;
  process.listeners = process.connections;
  process.failed = process.connections;
  process.failed[0].state = SlotState::kFailed;
  process.failed[0].life = {{.time_ns = 4900 * std::uint64_t{kNsPerSec},
                             .event = Event::kFailed,
                             .rail = 0,
                             .arg = 8,
                             .value = 111}};
  pages::Processes host;
  host.all = {process};
  const auto read = through_file(snapshot_of(host, kNowThere));
  REQUIRE(read);
  const pages::Process& copy = read->all.at(0);
  CHECK(copy.life == pages::Life::kStopped);
  CHECK(copy.listeners.size() == 1);
  REQUIRE(copy.failed.at(0).life.size() == 1);
  CHECK(copy.failed[0].state == SlotState::kFailed);
  CHECK(copy.failed[0].life[0].arg == 8);
  CHECK(copy.failed[0].life[0].value == 111);
  CHECK(copy.failed[0].life[0].time_ns == 800 * std::uint64_t{kNsPerSec});
}

TEST_CASE("hang, snapshot: ports that are down are kept", "[tools]") {
  pages::Process process = end_of_pair(0);
  SlotView& slot = process.connections.at(0);
  slot.paths = {{PathHealth::kUp, 0, 0, "mlx5_0:1", "mlx5_0:1"},
                {PathHealth::kDown, 0, 1, "mlx5_1:1", "mlx5_1:1"}};
  slot.life = {{.time_ns = 1, .event = Event::kPortDown, .rail = 1, .arg = 0, .value = 0}};
  pages::Processes host;
  host.all = {process};
  const auto read = through_file(snapshot_of(host, kNowThere));
  REQUIRE(read);
  CHECK(names_of_ports_down(read->all.at(0).connections.at(0)) ==
        std::vector<std::string>{"mlx5_1:1"});
}

TEST_CASE("hang, snapshot: another file is refused by its name", "[tools]") {
  const char* const text = GENERATE(
      "", "{}", "[1]", R"({"kind": "beeline-hang", "version": 2})",
      R"({"kind": "beeline-hang", "version": 2, "unreadable": 0, "processes": [{"pid": 1}]})",
      R"({"kind": "beeline-hang", "version": 2, "unreadable": 0, "processes": [{"pid": "x"}]})");
  const auto read = through_file(text);
  REQUIRE_FALSE(read);
  CHECK(read.error().text.find("beeline-snapshot-") != std::string::npos);
  CHECK(read.error().text.find(
            "is not a file that this version of beeline hang --save has written") !=
        std::string::npos);
  CHECK_FALSE(read_snapshot("/none", kNowHere));
}

}  // namespace
}  // namespace beeline::hang
