// SPDX-License-Identifier: Apache-2.0
//
// The collectives that ranks have called, by the numbers of NCCL's RAS.
#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tools/hang/collectives.h"

namespace beeline::hang {
namespace {

using Sentences = std::set<std::string>;

std::string rank(int number, const std::string& counts) {
  return R"({"rank": )" + std::to_string(number) + R"(, "host": "10.0.0.5", "pid": )" +
         std::to_string(100 + number) +
         R"(, "cuda_dev": 0, "status": {"init_state": 0}, "collective_counts": {)" + counts + "}}";
}

std::vector<Communicator> job(const std::vector<std::string>& counts,
                              const std::string& missing = "[]") {
  std::string ranks;
  for (std::size_t i = 0; i < counts.size(); ++i)
    ranks += (i == 0 ? "" : ", ") + rank(static_cast<int>(i), counts[i]);
  auto found = communicators_in(
      "SERVER PROTOCOL 2\nOK\n"
      R"({"nccl_version": "2.28.9", "communicators_count": 1, "communicators": [{"hash": "0xab", "size": 4, "ranks": [)" +
      ranks + R"(], "missing_ranks": )" + missing + "}]}\n");
  REQUIRE(found);
  return *std::move(found);
}

const char* const kMost = R"("AllReduce": 1412, "AllGather": 12)";

TEST_CASE("collectives: the rank that has not called one is named", "[tools]") {
  CHECK(what_differs(job({kMost, kMost, kMost, kMost})).empty());
  CHECK(
      what_differs(job({kMost, kMost, R"("AllReduce": 1411, "AllGather": 12)", kMost})) ==
      Sentences{"communicator 0xab: rank 2 (pid 102 on 10.0.0.5) has not called AllReduce 1412; 3 "
                "others have"});
}

TEST_CASE("collectives: another order is told from a rank that is late", "[tools]") {
  CHECK(what_differs(job({kMost, R"("AllReduce": 1411, "AllGather": 13)", kMost, kMost})) ==
        Sentences{"communicator 0xab: rank 1 (pid 101 on 10.0.0.5) has called AllGather 13 in the "
                  "place of AllReduce 1412, which 3 others have called: the order of collectives "
                  "differs"});
  CHECK(what_differs(job({R"("AllReduce": 1413, "AllGather": 12)", kMost, kMost, kMost})) ==
        Sentences{"communicator 0xab: rank 0 (pid 100 on 10.0.0.5) has called AllReduce 1413; 3 "
                  "others have not"});
}

TEST_CASE("collectives: several ranks, and ranks that do not answer", "[tools]") {
  const std::string late = R"("AllReduce": 7)";
  const std::vector<std::string> most(7, R"("AllReduce": 9)");
  std::vector<std::string> all = {late, late, late, late, late, late};
  all.insert(all.end(), most.begin(), most.end());
  const Sentences found =
      what_differs(job(all, R"([{"rank": 15, "host": "10.0.0.6", "pid": 7}, {"rank": 14}])"));
  CHECK(found == Sentences{"communicator 0xab: 2 of its ranks do not answer NCCL, first rank 14",
                           "communicator 0xab: ranks 0, 1, 2, 3 and 2 more have not called "
                           "AllReduce 8; 7 others have"});
}

TEST_CASE("collectives: an answer that is none", "[tools]") {
  for (const char* const text :
       {"", "ERROR", "OK\n{", R"({"communicators": 1})", R"({"communicators": [{"hash": 1}]})",
        R"({"communicators": [{"hash": "a", "ranks": [{"rank": -1}]}]})"}) {
    CAPTURE(text);
    CHECK_FALSE(communicators_in(text));
  }
  const auto found = communicators_in(R"({"communicators": [{"hash": "\u001b[2J", "ranks": [)" +
                                      rank(0, "") + "]}]}");
  REQUIRE(found);
  CHECK(found->front().hash == "?[2J");
}

TEST_CASE("collectives: they are of a job by the pids", "[tools]") {
  const std::vector<Communicator> found = job({kMost, kMost});
  std::vector<pages::Process> processes(1);
  processes[0].pid = 101;
  CHECK(is_of(found, processes));
  processes[0].pid = 4711;
  CHECK_FALSE(is_of(found, processes));
}

}  // namespace
}  // namespace beeline::hang
