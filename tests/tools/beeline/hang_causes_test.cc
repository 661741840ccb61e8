// SPDX-License-Identifier: Apache-2.0
//
// Processes whose connections wait: which of them the others wait for, and what is said of it.
#include <algorithm>

#include "common/base/clock.h"
#include "tests/support/catch.h"
#include "tools/hang/lasting.h"
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
      processes.push_back({.pid = 100 + rank,
                           .host = "n1",
                           .rank = rank,
                           .ranks = ranks,
                           .identity = identity_of(static_cast<std::size_t>(rank)),
                           .connections = {}});
    }
  }

  static std::uint64_t identity_of(std::size_t rank) { return 7000 + rank; }

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

  // Sets the counters of both ends of the newest connection.
  void count(std::size_t from, std::size_t to, std::uint64_t messages, std::uint64_t grants) {
    constexpr auto kMessages = static_cast<std::uint32_t>(Counter::kMessages);
    constexpr auto kGrants = static_cast<std::uint32_t>(Counter::kGrants);
    processes[from].connections.back().counters[kMessages] = messages;
    processes[to].connections.back().counters[kGrants] = grants;
  }

  // A connect() that is under way, to a listener of the rank that is called 9.
  void pend(std::size_t from, std::size_t to, std::int64_t seconds = 60) {
    add(from, to, ++last, SlotRole::kSend, Wait::kConnect, seconds);
    SlotView& slot = processes[from].connections.back();
    slot.state = SlotState::kConnecting;
    slot.peer_pid = 0;
    slot.peer_number = 9;
    slot.peer_identity = identity_of(to);
  }
  // accept() waits at that listener.
  void listen(std::size_t here, std::int64_t seconds = 60) {
    add(here, 0, 9, SlotRole::kListen, Wait::kAccept, seconds);
    processes[here].listeners.push_back(processes[here].connections.back());
    processes[here].connections.pop_back();
  }
  // A connect() that has failed.
  void fail(std::size_t from, std::size_t to, std::int64_t seconds = 60) {
    SlotView slot = {};
    slot.state = SlotState::kFailed;
    slot.role = SlotRole::kSend;
    slot.peer_host = "n1";
    slot.peer_device = "mlx5_" + std::to_string(to) + ":1";
    slot.peer_identity = identity_of(to);
    slot.closed_ns = static_cast<std::uint64_t>(kNow - seconds * kNsPerSec);
    slot.life.push_back({.time_ns = slot.closed_ns,
                         .event = Event::kFailed,
                         .rail = 0,
                         .arg = static_cast<std::uint32_t>(Errc::kPeerClosed),
                         .value = 0});
    processes[from].failed.push_back(slot);
  }
  // It has noticed that this peer has died.
  void lose(std::size_t here, std::size_t peer, std::int64_t seconds) {
    fail(here, peer, seconds);
    SlotView& slot = processes[here].failed.back();
    slot.peer_pid = static_cast<std::uint64_t>(100 + peer);
    slot.life.insert(slot.life.begin(), slot.life.front());
    slot.life.front().event = Event::kPeerDied;
  }
  // The receiving end has not called accept() for the newest connection.
  void unaccept(std::size_t to) { processes[to].connections.pop_back(); }

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
  std::vector<JobReport> report() const {
    return {{.job = {.processes = processes}, .analysis = analyze()}};
  }
  std::string text() const { return text_of(report(), kNow, {.width = 200}); }

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

TEST_CASE("hang: a credit that has not arrived is lost by the process that has sent it",
          "[tools]") {
  Job job(4);
  const std::int64_t longer = GENERATE(70, 50);  // whose wait is longer makes no difference
  job.connect(0, 1, Wait::kCredit, Wait::kNothing);
  job.connect(3, 2, Wait::kNothing, Wait::kNothing);
  job.connect(1, 2, Wait::kCredit, Wait::kData);
  job.processes[2].connections.back().waits_since_ns =
      static_cast<std::uint64_t>(kNow - longer * kNsPerSec);
  job.count(1, 2, 100, 101);
  SECTION("it alone") {
    CHECK(job.causes() == one(Reason::kCreditLost, 2));
    CHECK(job.analyze().causes[0].waiting == 2);
    CHECK_THAT(job.text(), Catch::Contains("CAUSE    rank 2 (pid 102) has posted a receive, and "
                                           "rank 1 (pid 101) wants to send and "
                                           "has not been told of it for " +
                                           std::to_string(std::max<std::int64_t>(longer, 60)) +
                                           " s: the credit from mlx5_2"));
    CHECK_THAT(job.text(), Catch::Contains(" is lost\n         2 processes wait for it"));
  }
  SECTION("the sender has used all that was granted, so it is data that is lost") {
    job.count(1, 2, 101, 101);
    CHECK(job.causes() == one(Reason::kLost));
  }
  SECTION("another connection of one of the two loses packets as well") {
    const auto other = GENERATE(std::size_t{1}, std::size_t{2});
    job.connect(other, 3, Wait::kCredit, Wait::kData);
    job.count(other, 3, 7, 8);
    const std::string lost = one(Reason::kLost)[0];
    CHECK(job.causes() == std::vector{lost, lost});
  }
  SECTION("a connection of two others does, too") {
    job.connect(0, 3, Wait::kCredit, Wait::kData);
    job.count(0, 3, 7, 8);
    CHECK(job.analyze().causes.size() == 2);
    CHECK(job.analyze().causes[0].reason == Reason::kCreditLost);
    CHECK(job.analyze().causes[1].reason == Reason::kCreditLost);
  }
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

TEST_CASE("hang: connections between the same devices are one cause", "[tools]") {
  const auto [sender, receiver, reason, words] = GENERATE(table<Wait, Wait, Reason, std::string>(
      {{Wait::kPath, Wait::kPath, Reason::kNoPath,
        "CAUSE    no path works between mlx5_0 of rank 0 (pid 100) and mlx5_1:1 of rank 1 (pid "
        "101), on 4 connections\n"},
       {Wait::kAcknowledgment, Wait::kData, Reason::kLost,
        "CAUSE    packets between mlx5_0 of rank 0 (pid 100) and mlx5_1:1 of rank 1 (pid 101) "
        "have been lost for 60 s, on 4 connections\n"}}));
  Job job(2);
  for (int pair = 0; pair < 2; ++pair) {
    job.connect(0, 1, sender, receiver);
    job.connect(1, 0, sender, receiver);
  }
  CHECK(job.causes() == one(reason));
  CHECK(job.text().find(words) != std::string::npos);
  CHECK(json_of(job.report(), kNow).find("\"connections\": 4") != std::string::npos);
  SECTION("other devices of the same processes are another") {
    job.connect(0, 1, sender, receiver);
    job.processes[0].connections.back().device = "mlx5_7";
    CHECK(job.causes().size() == 2);
  }
}

TEST_CASE("hang: lines that are equal are printed once", "[tools]") {
  Job job(2);
  for (int i = 0; i < 3; ++i) job.connect(0, 1, Wait::kPath, Wait::kNothing);
  CHECK(job.text().find(
            "\nConnections that wait\n  rank 0 (pid 100), mlx5_0 to rank 1 (pid 101): waits 60 "
            "s for a path that works (3 connections)\n") != std::string::npos);
}

TEST_CASE("hang: a port that is down is named", "[tools]") {
  Job job(2);
  job.connect(0, 1, Wait::kPath, Wait::kPath);
  const auto end_with = [&](std::size_t rank, const std::vector<Event>& events) {
    SlotView& slot = job.processes[rank].connections.back();
    slot.paths.push_back({PathHealth::kDown, 0, 1, slot.device + ":1", slot.device + ":1"});
    for (const Event event : events) slot.life.push_back({0, event, 0, 0, 0});
  };
  const auto text = [&job] { return job.text(); };
  SECTION("the other end has only heard of it") {
    end_with(0, {Event::kPathDown});
    end_with(1, {Event::kPortDown, Event::kPathDown});
    CHECK(text().find("of rank 1 (pid 101): mlx5_1:1 of rank 1 (pid 101) is DOWN\n") !=
          std::string::npos);
    CHECK(text().find("next  look at the cable") != std::string::npos);
  }
  SECTION("at both ends") {
    end_with(0, {Event::kPortDown, Event::kPathDown});
    end_with(1, {Event::kPortDown, Event::kPathDown});
    CHECK(text().find("mlx5_0:1 of rank 0 (pid 100) and mlx5_1:1 of rank 1 (pid 101) are DOWN\n") !=
          std::string::npos);
  }
  SECTION("seen on another connection only") {
    end_with(0, {Event::kPathDown});
    job.connect(1, 0, Wait::kNothing, Wait::kNothing);
    end_with(1, {Event::kPortDown, Event::kPathDown});
    CHECK(text().find("mlx5_1:1 of rank 1 (pid 101) is DOWN\n") != std::string::npos);
    job.processes[1].connections.back().paths.back().device = "mlx5_7:1";  // by another NIC
    CHECK(text().find("DOWN") == std::string::npos);
  }
  SECTION("it has worked since") {
    end_with(0, {Event::kPathDown});
    end_with(1, {Event::kPortDown, Event::kPathDown, Event::kPathUp, Event::kPathDown});
    CHECK(text().find("DOWN") == std::string::npos);
    CHECK(text().find("next  look at the logs of both processes") != std::string::npos);
  }
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

TEST_CASE("hang: a process that does not accept a connection is the cause", "[tools]") {
  Job job(3);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing);
  job.unaccept(1);
  SECTION("a sender waits for it") {
    CHECK(job.causes() == one(Reason::kNotAccepted, 1));
    CHECK(
        job.text().find("CAUSE    rank 1 (pid 101) has not accepted the connection of rank 0 (pid "
                        "100) for 60 s, and waits for nothing itself\n") != std::string::npos);
  }
  SECTION("a connect waits for it") {
    job.pend(2, 1, 70);
    CHECK(job.causes() == one(Reason::kNotAccepted, 1));
    CHECK(job.analyze().causes[0].waiting == 2);
  }
  SECTION("it waits itself, and is not") {
    job.connect(1, 2, Wait::kCredit, Wait::kNothing);
    CHECK(job.causes() == one(Reason::kNoReceive, 2));
  }
  SECTION("it is stopped") {
    job.processes[1].life = Life::kStopped;
    CHECK(job.causes() == one(Reason::kStopped, 1));
  }
  SECTION("its page may not show all connections") {
    job.processes[1].slots_refused = 1;
    CHECK(job.causes() == one(Reason::kElsewhere));
  }
}

TEST_CASE("hang: where connect and accept both wait, packets are lost", "[tools]") {
  Job job(2);
  job.pend(0, 1);
  job.listen(1);
  CHECK(job.causes() == one(Reason::kLost));
  CHECK(job.text().find("CAUSE    the connection of rank 0 (pid 100) to rank 1 (pid 101) is not "
                        "made for 60 s, although both try\n") != std::string::npos);
}

TEST_CASE("hang: a process with a failed connection that waits for nothing is the cause",
          "[tools]") {
  Job job(3);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing);
  job.fail(1, 2);
  SECTION("others wait for it") {
    CHECK(job.causes() == one(Reason::kConnectionFailed, 1));
    CHECK(job.text().find("CAUSE    rank 1 (pid 101) has a connection that failed, to mlx5_2:1 on "
                          "n1 (peer closed), and waits for nothing itself\n") != std::string::npos);
  }
  SECTION("the process that waits in accept is the one that it could not reach") {
    job.listen(2);
    CHECK(job.causes() == one(Reason::kConnectionFailed, 1));
    CHECK(job.analyze().causes[0].waiting == 2);
  }
  SECTION("it waits itself, and is not") {
    job.connect(1, 2, Wait::kCredit, Wait::kNothing);
    CHECK(job.causes() == one(Reason::kNoReceive, 2));
  }
  SECTION("it has accepted a connection since, and still is") {
    job.processes[1].connections.back().opened_ns = kNow - kNsPerSec;
    CHECK(job.causes() == one(Reason::kConnectionFailed, 1));
  }
  SECTION("it has connected again since, and is not") {
    job.connect(1, 2, Wait::kNothing, Wait::kNothing);
    job.processes[1].connections.back().opened_ns = kNow - kNsPerSec;
    CHECK(job.causes() == one(Reason::kNoReceive, 1));
  }
}

TEST_CASE("hang: the process that died first is the cause, and no survivor", "[tools]") {
  Job job(4);
  job.processes[2].life = Life::kEnded;
  job.lose(1, 2, 12);
  job.lose(3, 2, 11);
  SECTION("none waits, since all have caught the error") {
    CHECK(job.causes() == one(Reason::kEnded, 2));
    CHECK(
        job.text().starts_with("3 processes with 0 connections: none has waited for long, but a "
                               "peer has gone\n"));
    CHECK(job.text().find("CAUSE    rank 2 (pid 102) has ended, without closing its connections: "
                          "rank 1 (pid 101) has noticed it first, 12 s ago\n         2 processes "
                          "wait for it, or have lost it\n") != std::string::npos);
  }
  SECTION("another waits for a survivor") {
    job.connect(0, 1, Wait::kCredit, Wait::kNothing);
    CHECK(job.causes() == one(Reason::kEnded, 2));
    CHECK(job.analyze().causes[0].waiting == 3);
  }
  SECTION("the survivors have ended, too, and their peers have noticed that") {
    job.processes[1].life = job.processes[3].life = Life::kEnded;
    job.lose(0, 1, 9);
    job.lose(0, 3, 10);
    CHECK(job.causes() == one(Reason::kEnded, 2));
  }
  SECTION("all have ended") {
    for (Process& process : job.processes) process.life = Life::kEnded;
    CHECK(job.causes() == one(Reason::kEnded, 2));
  }
  SECTION("its page is not here") {
    job.processes.erase(job.processes.begin() + 2);
    CHECK(job.causes() == one(Reason::kEnded));
    CHECK(job.text().find("CAUSE    pid 102 on n1 has ended, or its host is not reached any more, "
                          "without closing") != std::string::npos);
  }
}

TEST_CASE("hang: what is over is no death", "[tools]") {
  Job job(4);
  SECTION("the survivors have connected again") {
    job.processes[2].life = Life::kEnded;
    job.lose(1, 2, 12);
    job.connect(1, 3, Wait::kNothing, Wait::kNothing);
    job.processes[1].connections.back().opened_ns = kNow - kNsPerSec;
    CHECK(job.causes().empty());
  }
  SECTION("the peer runs, and was not reached") {
    job.lose(1, 2, 12);
    CHECK(job.causes().empty());
  }
  SECTION("the job has ended, and another runs") {
    for (const std::size_t rank : {1U, 2U}) job.processes[rank].life = Life::kEnded;
    job.lose(1, 2, 12);
    CHECK(job.causes().empty());
  }
}

TEST_CASE("hang: ranks without a page are missing where somebody waits for a connection",
          "[tools]") {
  Job job(4);
  job.processes.erase(job.processes.begin() + 2);
  SECTION("in accept") { job.listen(2); }
  SECTION("in connect") { job.pend(1, 2); }
  CHECK(job.causes() == one(Reason::kRankMissing));
  CHECK(job.text().find(
            "CAUSE    rank 2 of 4 has no running process with a statistics page on this "
            "host: it has not started, has ended, or runs on another host\n") != std::string::npos);
}

TEST_CASE("hang: a process without connections may wait for the rank that is missing", "[tools]") {
  Job job(4);
  job.processes.erase(job.processes.begin() + 2);
  job.listen(2);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing);
  job.unaccept(1);
  CHECK(job.causes() == one(Reason::kRankMissing));
  CHECK(job.analyze().causes[0].waiting == 3);
  CHECK(job.text().find("on another host; rank 1 (pid 101) has made no connection yet\n") !=
        std::string::npos);
  job.connect(1, 0, Wait::kNothing, Wait::kNothing);
  CHECK(job.analyze().causes.size() == 2);  // it has begun, so it is to be looked at as well
}

TEST_CASE("hang: ranks that are missing are named as ranges", "[tools]") {
  Job job(8);
  job.processes.erase(job.processes.begin() + 4, job.processes.end() - 1);
  job.processes.erase(job.processes.begin());
  job.listen(0);
  CHECK(job.text().find(
            "CAUSE    ranks 0, 4-6 of 8 have no running process with a statistics page "
            "on this host: they have not started, have ended, or run on another host\n") !=
        std::string::npos);
  // Processes of other jobs, and one that has ended, are none of them.
  Process other = job.processes[0];
  other.rank = 0;
  other.listeners.clear();
  job.processes.push_back(other);
  job.processes.back().ranks = 2;
  job.processes.push_back(other);
  job.processes.back().job = "48214.0";
  job.processes.push_back(other);
  job.processes.back().life = Life::kEnded;
  CHECK(job.analyze().causes[0].missing == std::vector<RankRange>{{0, 0}, {4, 6}});
}

TEST_CASE("hang: of the ranks that are here, the one that has not begun is the cause", "[tools]") {
  Job job(4);
  job.listen(3);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing, 4);
  SECTION("it has neither listened nor connected") {
    job.processes[2].identity = 0;
    CHECK(job.causes() == one(Reason::kNotBegun, 2));
    job.connect(0, 1, Wait::kCredit, Wait::kNothing);
    job.processes[1].connections.clear();  // it waits for the handle of the other
    CHECK(job.causes() == one(Reason::kNotBegun, 2));
    CHECK(job.analyze().causes[0].waiting == 3);
    CHECK(job.text().find("CAUSE    rank 2 (pid 102) has neither listened nor connected yet, and "
                          "rank 3 (pid 103) has waited 60 s for a connection\n") !=
          std::string::npos);
  }
  SECTION("all have begun") {
    CHECK(job.causes() == one(Reason::kElsewhere));
    CHECK(job.text().find("and no process makes it: these wait for nothing: rank 1 (pid 101), rank "
                          "2 (pid 102)\n") != std::string::npos);
  }
  SECTION("how many there are is not known") {
    for (Process& process : job.processes) process.ranks.reset();
    CHECK(job.text().find("and no process here makes it\n") != std::string::npos);
  }
}

TEST_CASE("hang: a debugger is not advised where it would wait itself", "[tools]") {
  Job job(2);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing);
  CHECK(job.text().find("next  py-spy dump --pid 101") != std::string::npos);
  job.processes[1].blocked_threads = 3;
  CHECK(job.text().find("waits for nothing itself; 3 threads of it wait in the kernel and take no "
                        "signal (state D), as for storage that does not answer\n") !=
        std::string::npos);
  CHECK(job.text().find("py-spy") == std::string::npos);
  CHECK(job.text().find("cat /proc/101/task/*/wchan") != std::string::npos);
}

TEST_CASE("hang: only a cause that is there at each look lasts", "[tools]") {
  Job job(3);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing);
  LastingCauses lasting;
  lasting.add(job.report());
  CHECK_FALSE(lasting.empty());
  SECTION("it looks different, and is the same process") {
    Job later(3);
    later.connect(1, 0, Wait::kNothing, Wait::kData);
    lasting.add(later.report());
    CHECK_FALSE(lasting.empty());
  }
  SECTION("another process") {
    Job later(3);
    later.connect(0, 2, Wait::kCredit, Wait::kNothing);
    lasting.add(later.report());
    CHECK(lasting.empty());
    lasting.add(job.report());
    CHECK(lasting.empty());
  }
}

TEST_CASE("hang: each job is judged by its own processes", "[tools]") {
  Job lacking(4);
  lacking.processes.erase(lacking.processes.begin() + 2);
  lacking.listen(2);
  Job healthy(4);
  healthy.connect(0, 2, Wait::kNothing, Wait::kNothing);
  const bool have_names = GENERATE(true, false);
  if (have_names) {
    for (Process& process : lacking.processes) process.job = "1.0";
    for (Process& process : healthy.processes) process.job = "2.0";
  } else {  // they have connections with one another
    lacking.connect(0, 1, Wait::kNothing, Wait::kNothing);
    lacking.connect(1, 2, Wait::kNothing, Wait::kNothing);
    for (const std::size_t rank : {1U, 3U})
      healthy.connect(0, rank, Wait::kNothing, Wait::kNothing);
  }
  std::vector<Process> all = lacking.processes;
  for (Process& process : healthy.processes) {
    process.host = "n2";
    for (SlotView& slot : process.connections) slot.peer_host = "n2";
    all.push_back(process);
  }
  std::rotate(all.begin(), all.begin() + 3, all.end());
  const std::vector<JobReport> reports = reports_of(all, kNow, 5 * kNsPerSec);
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].job.processes.size() == 4);
  CHECK(reports[0].analysis.causes.empty());
  REQUIRE(reports[1].analysis.causes.size() == 1);
  CHECK(reports[1].analysis.causes[0].reason == Reason::kRankMissing);
  CHECK(reports[1].analysis.causes[0].missing == std::vector<RankRange>{{2, 2}});
  const std::string text = text_of(reports, kNow, {.width = 200});
  CHECK(text.starts_with(have_names ? "Job 2.0\n" : "A job without a name, with pid 100\n"));
  CHECK((json_of(reports, kNow).find(R"("job": "1.0")") != std::string::npos) == have_names);
}

TEST_CASE("hang: a rank without connections belongs to the job that lacks it", "[tools]") {
  Job job(4);
  job.connect(0, 1, Wait::kNothing, Wait::kNothing);
  job.connect(1, 3, Wait::kNothing, Wait::kNothing);
  std::vector<Process> all = job.processes;
  std::rotate(all.begin(), all.begin() + 2, all.end());  // rank 2 has the smallest pid
  Process other = job.processes[2];
  other.pid = 200;
  all.push_back(other);
  other.pid = 300;
  other.ranks = 8;
  all.push_back(other);
  std::vector<std::size_t> sizes;
  for (const JobReport& report : reports_of(all, kNow, kNsPerSec))
    sizes.push_back(report.job.processes.size());
  CHECK(sizes == std::vector<std::size_t>{4, 1, 1});
}

TEST_CASE("hang: a wait in accept is a cause only if there is no other", "[tools]") {
  Job job(4);
  job.listen(0);
  job.connect(1, 0, Wait::kCredit, Wait::kNothing);
  CHECK(job.causes() == one(Reason::kElsewhere));
  CHECK(
      job.text().find("CAUSE    rank 0 (pid 100) has waited 60 s for a connection, and no process "
                      "makes it: these wait for nothing: rank 2 (pid 102), rank 3 (pid 103)\n") !=
      std::string::npos);
  CHECK(job.text().find("\n  rank 0 (pid 100), mlx5_0: waits 60 s for a connection to accept\n") !=
        std::string::npos);
  job.connect(2, 3, Wait::kCredit, Wait::kNothing);
  CHECK(job.causes() == one(Reason::kNoReceive, 3));
}

TEST_CASE("hang: a listener is no connection", "[tools]") {
  Job job(1);
  job.listen(0, 1);
  CHECK(job.text() == "1 process with 0 connections: none has waited for long\n");
}

TEST_CASE("hang: short waits are left out, and lead to the cause all the same", "[tools]") {
  Job job(3);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing, 60);
  job.connect(1, 2, Wait::kCredit, Wait::kNothing, 4);
  const Analysis analysis = job.analyze();
  CHECK(analysis.waits.size() == 1);
  CHECK(job.causes() == one(Reason::kNoReceive, 2));
  CHECK(Job(3).analyze().causes.empty());
  CHECK(text_of({}, 0, {}) == "no running process uses Beeline\n");
}

TEST_CASE("hang: the report names the cause first, and then every wait", "[tools]") {
  Job job(3);
  job.connect(0, 1, Wait::kCredit, Wait::kNothing);
  job.connect(1, 2, Wait::kNothing, Wait::kData);
  CHECK(job.text() ==
        R"(3 processes with 4 connections: 2 have waited for long

CAUSE    rank 1 (pid 101) has posted no receive for 60 s, and waits for nothing itself
         2 processes wait for it, at once or by way of others
         next  py-spy dump --pid 101, or gdb -p 101 -batch -ex 'thread apply all bt'

Connections that wait
  rank 0 (pid 100), mlx5_0 to rank 1 (pid 101): waits 60 s for a receive of the peer
  rank 2 (pid 102), mlx5_2 from rank 1 (pid 101): waits 60 s for data from the peer
)");
}

}  // namespace
}  // namespace beeline::hang
