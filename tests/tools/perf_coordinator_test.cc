// SPDX-License-Identifier: Apache-2.0
//
// Sends frames to the coordinator that no rank should send.
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "tests/support/catch.h"
#include "tools/perf/coordinator.h"

namespace beeline::perf {
namespace {

using ranks::FrameKind;
using ranks::FrameSocket;

struct Ends {
  FrameSocket ours;
  FrameSocket theirs;
};

Ends make_ends(size_t longest) {
  std::array<int, 2> fds{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0);
  return {FrameSocket(UniqueFd(fds[0]), longest), FrameSocket(UniqueFd(fds[1]))};
}

// The exit status of a run whose only rank sends this and then closes the connection.
int status_after(FrameKind kind, const std::string& body) {
  Ends ends = make_ends(1 << 20);
  REQUIRE(ends.theirs.send(kind, body));
  ends.theirs.close();
  Options options;
  options.ranks = 1;
  options.timeout_seconds = 600;
  std::vector<Member> members(1);
  members[0].socket = std::move(ends.ours);
  Coordinator coordinator(options, *find_pattern("rate"), std::move(members));
  return coordinator.run();
}

TEST_CASE("coordinator: a rank that failed is a failure, whatever status it names",
          "[tools][coordinator]") {
  CHECK(status_after(FrameKind::kFailed, std::string("\0why", 4)) == tools::kFailed);
  CHECK(status_after(FrameKind::kFailed, "\1why") == tools::kFailed);
  CHECK(status_after(FrameKind::kFailed, "\2why") == tools::kUsage);
  CHECK(status_after(FrameKind::kFailed, "\x7fwhy") == tools::kFailed);
  CHECK(status_after(FrameKind::kFailed, "") == tools::kFailed);
}

TEST_CASE("coordinator: frames that make no sense end the run", "[tools][coordinator]") {
  for (const FrameKind kind : {FrameKind::kPlugin, FrameKind::kStatus, FrameKind::kRow}) {
    CAPTURE(static_cast<int>(kind));
    for (const std::string body :
         {"", "{", "[]", "7", R"({"devices": [7], "done": "much", "size": "large"})"}) {
      CAPTURE(body);
      CHECK(status_after(kind, body) == tools::kFailed);
    }
  }
  CHECK(status_after(FrameKind::kHello, "{}") == tools::kFailed);
  CHECK(status_after(static_cast<FrameKind>(200), "") == tools::kFailed);
}

TEST_CASE("line: an announced frame that is too long ends it", "[tools][line]") {
  Ends ends = make_ends(8);
  REQUIRE(ends.theirs.send(FrameKind::kHello, "12345678"));
  CHECK(ends.ours.receive()->body == "12345678");
  REQUIRE(ends.theirs.send(FrameKind::kHello, "123456789"));
  CHECK_FALSE(ends.ours.read_some());
  CHECK_FALSE(ends.ours.next());
  ends.ours.trust();
  CHECK(ends.ours.next()->body == "123456789");
}

TEST_CASE("line: a frame is not waited for beyond the deadline", "[tools][line]") {
  Ends ends = make_ends(8);
  CHECK_FALSE(ends.ours.receive(now_ns()));
}

}  // namespace
}  // namespace beeline::perf
