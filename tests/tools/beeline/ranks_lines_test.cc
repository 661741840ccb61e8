// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <utility>

#include "common/base/clock.h"
#include "tests/support/catch.h"
#include "tools/ranks/hex.h"
#include "tools/ranks/line_stream.h"

namespace beeline::ranks {
namespace {

struct Ends {
  LineStream a;
  LineStream b;
};

Ends over_socket() {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {LineStream(UniqueFd(ends[0])), LineStream(UniqueFd(ends[1]))};
}

Ends over_pipes() {
  std::array<int, 2> there{};
  std::array<int, 2> back{};
  REQUIRE(::pipe2(there.data(), O_CLOEXEC) == 0);
  REQUIRE(::pipe2(back.data(), O_CLOEXEC) == 0);
  return {{UniqueFd(back[0]), UniqueFd(there[1])}, {UniqueFd(there[0]), UniqueFd(back[1])}};
}

// The words of an error.
std::string failure_of(LineStream& stream, std::int64_t patience_ns = kNsPerSec) {
  const Outcome<std::string> line = stream.receive(now_ns() + patience_ns);
  REQUIRE_FALSE(line);
  return line.error().text;
}

TEST_CASE("line: it arrives whole, however it was written", "[tools][line]") {
  std::signal(SIGPIPE, SIG_IGN);
  auto [a, b] = GENERATE(true, false) ? over_socket() : over_pipes();
  CHECK_FALSE(b.is_readable());
  REQUIRE(a.send("first\nsecond"));  // as two lines at once
  CHECK(*b.receive(now_ns() + kNsPerSec) == "first");
  CHECK(b.is_readable());
  CHECK(*b.receive(now_ns() + kNsPerSec) == "second");
  b.allow(999);
  REQUIRE(a.send(std::string(1000, 'x')));
  CHECK(failure_of(b) == "sends a line that is too long");
  CHECK_FALSE(b.next());
  b.allow(1000);
  CHECK(b.next()->size() == 1000);
  CHECK(failure_of(b, kNsPerMs) == "does not answer");
  CHECK(b.read_some());
  REQUIRE(a.send("the last"));
  a = {};
  CHECK(*b.receive() == "the last");
  CHECK(failure_of(b) == "has ended");
  CHECK_FALSE(b.read_some());
  CHECK_FALSE(b.send("to nobody"));
}

TEST_CASE("line: bytes become digits, and bytes again", "[tools][line]") {
  const std::string bytes("\0\x7f\xff\n", 4);
  CHECK(hex_of(bytes) == "007fff0a");
  CHECK(bytes_of("007fff0a") == bytes);
  CHECK(bytes_of("007FFF0A") == bytes);
  CHECK(bytes_of("007f, and more") == bytes.substr(0, 2));
  CHECK(bytes_of("").empty());
  CHECK(hex_of("").empty());
}

}  // namespace
}  // namespace beeline::ranks
