// SPDX-License-Identifier: Apache-2.0
//
// Sends lines to the coordinator that no rank should send.
#include <sys/socket.h>

#include <array>
#include <string>
#include <utility>

#include "tests/support/catch.h"
#include "tools/perf/coordinator.h"
#include "tools/perf/json.h"

namespace beeline::perf {
namespace {

// The exit status of a run whose only rank sends this and then closes the connection.
int status_after(const std::string& line) {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  REQUIRE(ranks::LineStream(UniqueFd(ends[1])).send(line));
  Options options;
  options.ranks = 1;
  options.timeout_seconds = 600;
  std::vector<ranks::Process> processes(1);
  processes[0].stream = ranks::LineStream(UniqueFd(ends[0]));
  Coordinator coordinator(options, *find_pattern("rate"), std::move(processes));
  return coordinator.run();
}

TEST_CASE("coordinator: a rank that failed is a failure, whatever status it names",
          "[tools][coordinator]") {
  CHECK(status_after("f" + encode(Ended{0, "why"})) == tools::kFailed);
  CHECK(status_after("f" + encode(Ended{1, "why"})) == tools::kFailed);
  CHECK(status_after("f" + encode(Ended{2, "why"})) == tools::kUsage);
  CHECK(status_after("f" + encode(Ended{127, "why"})) == tools::kFailed);
  CHECK(status_after("f" + encode(Ended{1, ""})) == tools::kFailed);
}

TEST_CASE("coordinator: lines that make no sense end the run", "[tools][coordinator]") {
  for (const std::string kind : {"p", "s", "r", "f"}) {
    CAPTURE(kind);
    for (const std::string body :
         {"", "{", "[]", "7", R"({"devices": [7], "done": "much", "size": "large", "code": ""})"}) {
      CAPTURE(body);
      CHECK(status_after(kind + body) == tools::kFailed);
    }
  }
  CHECK(status_after("") == tools::kFailed);
  CHECK(status_after("\xc8") == tools::kFailed);
}

}  // namespace
}  // namespace beeline::perf
