// SPDX-License-Identifier: Apache-2.0
//
// Processes whose connections wait: which of them the others wait for, and what is said of it.
#include "common/base/clock.h"
#include "tests/support/catch.h"
#include "tools/hang/report.h"

namespace beeline::hang {
namespace {

using pages::Life;
using pages::Process;

constexpr std::int64_t kNow = 1000 * kNsPerSec;

// Rank r of a job is process 100 + r. Connections get their numbers from the test.
struct Job {
  explicit Job(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      processes.push_back({.pid = 100 + rank, .host = "n1", .rank = rank, .connections = {}});
    }
  }

  // A connection, and what each end waits for.
  void connect(std::size_t from, std::size_t to, Wait sender, Wait receiver,
               std::int64_t seconds = 60) {
    const std::uint32_t number = ++last;
    add(from, to, number, SlotRole::kSend, sender, seconds);
    add(to, from, number + 1000, SlotRole::kReceive, receiver, seconds);
    processes[from].connections.back().peer_number = number + 1000;
    processes[to].connections.back().peer_number = number;
  }
  void add(std::size_t here, std::size_t there, std::uint32_t number, SlotRole role, Wait wait,
           std::int64_t seconds) {
    SlotView slot = {};
    slot.state = SlotState::kReady;
    slot.role = role;
    slot.device = "mlx5_" + std::to_string(here);
    slot.peer_host = "n1";
    slot.peer_device = "mlx5_" + std::to_string(there) + ":1";
    slot.peer_pid = static_cast<std::uint64_t>(100 + there);
    slot.number = number;
    if (wait != Wait::kNothing) {
      slot.waits_for = wait;
      slot.waits_since_ns = static_cast<std::uint64_t>(kNow - seconds * kNsPerSec);
      slot.requests = 3;
    }
    processes[here].connections.push_back(slot);
  }

  Analysis analyze(std::int64_t least_seconds = 5) const {
    return find_causes(processes, kNow, least_seconds * kNsPerSec);
  }
  // As "REASON:RANK" and "REASON", of all causes.
  std::vector<std::string> causes() const {
    std::vector<std::string> found;
    for (const Cause& cause : analyze().causes) {
      found.push_back(std::to_string(static_cast<int>(cause.reason)) +
                      (cause.process ? ":" + std::to_string(*cause.process) : ""));
    }
    return found;
  }
  std::string text() const { return text_of(analyze(), processes); }

  std::vector<Process> processes;
  std::uint32_t last = 0;
};

std::vector<std::string> one(Reason reason, std::optional<int> rank = {}) {
  return {std::to_string(static_cast<int>(reason)) + (rank ? ":" + std::to_string(*rank) : "")};
}

TEST_CASE("hang: the process at the end of the chain is the cause", "[tools]") {
  Job job(4);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing);
  job.connect(1, 2, Wait::kCredit, Wait::kNothing);
  SECTION("it posts no receive") {
    job.connect(2, 3, Wait::kCredit, Wait::kNothing);
    CHECK(job.causes() == one(Reason::kNoReceive, 3));
    CHECK(job.analyze().causes[0].waiting == 3);
  }
  SECTION("it sends nothing") {
    job.connect(3, 2, Wait::kNothing, Wait::kData);
    CHECK(job.causes() == one(Reason::kNoSend, 3));
  }
  SECTION("it is stopped, and its page is of before") {
    job.connect(2, 3, Wait::kCredit, Wait::kData);
    job.processes[3].life = Life::kStopped;
    CHECK(job.causes() == one(Reason::kStopped, 3));
  }
  SECTION("it has ended") {
    job.connect(2, 3, Wait::kAcknowledgment, Wait::kNothing);
    job.processes[3].life = Life::kEnded;
    CHECK(job.causes() == one(Reason::kEnded, 3));
  }
  SECTION("it calls nothing") {
    job.connect(2, 3, Wait::kCredit, Wait::kTest);
    CHECK(job.causes() == one(Reason::kCallsNothing, 3));
  }
  SECTION("it has no path") {
    job.connect(2, 3, Wait::kPath, Wait::kNothing);
    CHECK(job.causes() == one(Reason::kNoPath));
  }
}

TEST_CASE("hang: where both ends do their part, packets are lost", "[tools]") {
  const auto [sender, receiver] = GENERATE(std::pair(Wait::kAcknowledgment, Wait::kData),
                                           std::pair(Wait::kAcknowledgment, Wait::kNothing),
                                           std::pair(Wait::kCredit, Wait::kData));
  Job job(3);
  job.connect(0, 1, sender, receiver);
  job.connect(1, 2, Wait::kNothing, Wait::kData);  // a consequence
  CAPTURE(static_cast<int>(sender), static_cast<int>(receiver));
  const Analysis analysis = job.analyze();
  REQUIRE_FALSE(analysis.causes.empty());
  CHECK(analysis.causes[0].reason == Reason::kLost);
  if (receiver != Wait::kNothing) CHECK(analysis.causes.size() == 1);
  CHECK(job.text().find("packets between mlx5_0 of rank 0 (pid 100) and mlx5_1:1 of rank 1 (pid "
                        "101) have been lost for 60 s") != std::string::npos);
}

TEST_CASE("hang: a process that waits for one request may leave others untested", "[tools]") {
  Job job(3);
  job.connect(0, 1, Wait::kTest, Wait::kTest);
  job.connect(1, 2, Wait::kCredit, Wait::kNothing);
  job.connect(0, 2, Wait::kCredit, Wait::kNothing);
  CHECK(job.causes() == one(Reason::kNoReceive, 2));
}

TEST_CASE("hang: an untested request beside a connection that moves is no cause", "[tools]") {
  Job job(2);
  job.connect(0, 1, Wait::kTest, Wait::kNothing);
  job.connect(0, 1, Wait::kNothing, Wait::kNothing);
  CHECK(job.causes() == one(Reason::kCallsNothing, 0));
  job.processes[0].connections.back().moved_ns = kNow - kNsPerSec;
  CHECK(job.causes().empty());
}

TEST_CASE("hang: a circle beside another cause", "[tools]") {
  Job job(4);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing);
  job.connect(2, 3, Wait::kCredit, Wait::kNothing);
  job.connect(3, 2, Wait::kCredit, Wait::kNothing);
  const Analysis analysis = job.analyze();
  REQUIRE(analysis.causes.size() == 2);
  CHECK(analysis.causes[0].reason == Reason::kCircle);
  CHECK(analysis.causes[0].waiting == 2);
  CHECK(analysis.causes[1].reason == Reason::kNoReceive);
}

TEST_CASE("hang: a process that has ended does not take the place of one that runs", "[tools]") {
  Job job(2);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing);
  Process dead = job.processes[1];
  dead.life = Life::kEnded;
  job.processes.push_back(dead);
  CHECK(job.causes() == one(Reason::kNoReceive, 1));
}

TEST_CASE("hang: processes that wait for one another", "[tools]") {
  Job job(2);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing);
  job.connect(1, 0, Wait::kCredit, Wait::kNothing);
  CHECK(job.causes() == one(Reason::kCircle));
  CHECK(job.text().find("CAUSE    the processes wait for one another\n") != std::string::npos);
}

TEST_CASE("hang: a process on another host is where to look next", "[tools]") {
  Job job(2);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing);
  job.add(1, 7, 50, SlotRole::kReceive, Wait::kData, 60);
  job.processes[1].connections.back().peer_host = "n2";
  CHECK(job.causes() == one(Reason::kElsewhere));
  CHECK(job.text().find("pid 107 on n2, whose page is not here") != std::string::npos);
  // A process of this host that has that number by chance is another one.
  job.add(0, 9, 60, SlotRole::kSend, Wait::kNothing, 0);
  job.processes[0].pid = 107;
  job.processes[0].connections.back().number = 0;
  job.processes[0].connections.back().peer_number = 50;
  CHECK(job.causes() == one(Reason::kElsewhere));
}

TEST_CASE("hang: short waits are left out, and lead to the cause all the same", "[tools]") {
  Job job(3);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing, 60);
  job.connect(1, 2, Wait::kCredit, Wait::kNothing, 4);
  const Analysis analysis = job.analyze();
  CHECK(analysis.waits.size() == 1);
  CHECK(job.causes() == one(Reason::kNoReceive, 2));
  CHECK(Job(3).analyze().causes.empty());
  CHECK(text_of({}, {}) == "no process of this host uses Beeline\n");
}

TEST_CASE("hang: the report names the cause first, and then every wait", "[tools]") {
  Job job(3);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing);
  job.connect(1, 2, Wait::kNothing, Wait::kData);
  CHECK(job.text() ==
        R"(3 processes with 4 connections: 2 have waited for long

CAUSE    rank 1 (pid 101) has posted no receive for 60 s, and waits for nothing itself
         2 processes wait for it, at once or by way of others
         look  py-spy dump --pid 101, or gdb -p 101 -batch -ex 'thread apply all bt'

Connections that wait
  rank 0 (pid 100), mlx5_0 to rank 1 (pid 101): waits 60 s for a receive of the peer
  rank 2 (pid 102), mlx5_2 from rank 1 (pid 101): waits 60 s for data from the peer
)");
}

}  // namespace
}  // namespace beeline::hang
