// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/comm/path_log.h"

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"

namespace beeline {
namespace {

using Kind = PathNews::Kind;
using test::LogCapture;

// A log at a time that the test moves.
struct TimedLog {
  // `connection` has gone over to another port, or has returned.
  void add(std::size_t connection, PathNews news) {
    news.connection = &connections[connection];
    log.add(news, now_ns);
  }
  void leave(std::size_t connection, const std::string& port, std::int64_t ms = 1) {
    add(connection, {.place = place_of_port(port),
                     .what = " went DOWN",
                     .other = "nic1:1",
                     .ns = ms * kNsPerMs});
  }
  void come_back(std::size_t connection, const std::string& port) {
    add(connection, {.kind = Kind::kBack, .place = place_of_port(port), .ns = 3 * kNsPerSec});
  }
  // Moves the time on, and returns what was logged meanwhile.
  std::vector<std::string> lines_after(std::int64_t ns) {
    for (const std::int64_t end = now_ns + ns; now_ns < end;) {
      now_ns = std::min(end, std::max(now_ns + kNsPerMs, log.due_ns()));
      log.look(now_ns);
    }
    return take_lines();
  }
  std::vector<std::string> take_lines(LogLevel level = LogLevel::kWarn) {
    std::vector<std::string> lines;
    for (const LogCapture::Line& line : captured.lines()) {
      if (line.level == level) lines.push_back(line.text.substr(line.text.find("port ")));
    }
    captured.clear();
    return lines;
  }

  std::int64_t now_ns = 1000 * kNsPerSec;
  PathLog log;
  LogCapture captured;
  char connections[64] = {};
};

TEST_CASE("path log: one line for a port and second, with counts and times") {
  TimedLog end;
  for (std::size_t i = 0; i < 64; ++i) end.leave(i, "nic0:1", static_cast<std::int64_t>(i) + 20);
  CHECK(end.lines_after(kNsPerSec - 1).empty());
  CHECK(end.lines_after(1) ==
        std::vector<std::string>{"port nic0:1 of this host went DOWN: 64 connections went over to "
                                 "nic1:1 in 52 ms (median), 83 ms (longest)"});
  CHECK(end.log.due_ns() == PathLog::kNever);
  end.add(9, {.kind = Kind::kStandsIn,
              .place = place_of_port("nic0:1"),
              .other = "nic2:1",
              .ns = kNsPerSec});
  CHECK(end.lines_after(kNsPerSec) ==
        std::vector<std::string>{"port nic0:1 of this host does not work yet: 1 connection goes on "
                                 "over nic2:1, which stands in, after 1.0 s"});
  end.come_back(7, "nic0:1");
  CHECK(end.lines_after(kNsPerSec) ==
        std::vector<std::string>{
            "port nic0:1 of this host works again: 1 connection uses it again, after 3.0 s"});
}

TEST_CASE("path log: events of the port are in the line about its connections") {
  TimedLog end;
  const std::string nic0 = place_of_port("nic0:1");
  end.log.add({PortNews::Kind::kDown, nic0, kPortReportsError}, end.now_ns);
  end.leave(0, "nic0:1");
  end.log.add({PortNews::Kind::kUp, nic0, " is ACTIVE again"}, end.now_ns);
  end.log.add({PortNews::Kind::kDown, nic0, kPortReportsError}, end.now_ns);
  end.log.add({PortNews::Kind::kUp, nic0, " is ACTIVE again"}, end.now_ns);
  end.come_back(0, "nic0:1");
  CHECK(end.lines_after(kNsPerSec) ==
        std::vector<std::string>{
            "port nic0:1 of this host went DOWN 2 times in 1.0 s, and is ACTIVE again: 1 "
            "connection went over to nic1:1 in 1.0 ms; 1 connection uses it again, after 3.0 s"});
  // Without a connection that uses it.
  end.log.add({PortNews::Kind::kDown, nic0, kPortReportsError}, end.now_ns);
  CHECK(end.lines_after(kNsPerSec) ==
        std::vector<std::string>{"port nic0:1 of this host reports an error"});
}

TEST_CASE("path log: a port that flaps has ever fewer lines, until it is calm") {
  TimedLog end;
  std::size_t lines = 0;
  std::vector<std::string> last;
  for (int i = 0; i < 300; ++i) {  // a minute
    end.add(0, {.place = place_of_port("nic0:1"), .what = " went DOWN", .is_held = i > 10});
    last = end.lines_after(kNsPerSec / 5);
    lines += last.size();
  }
  CHECK(lines == 3 + 5);
  std::size_t advice = 0;
  end.lines_after(60 * kNsPerSec);
  end.add(0, {.place = place_of_port("nic0:1"), .what = " went DOWN", .is_held = true});
  for (int i = 0; i < 3; ++i) {
    for (const std::string& line : end.lines_after(kNsPerSec))
      advice += line.find("It fails often, ") != std::string::npos ? 1 : 0;
    end.leave(0, "nic0:1");
  }
  CHECK(advice == 1);
}

TEST_CASE("path log: ports that work again at once have one line, and many places a limit") {
  TimedLog end;
  end.come_back(0, "nic0:1");
  end.come_back(0, "nic1:1");
  end.come_back(1, "nic1:1");
  CHECK(end.lines_after(kNsPerSec) ==
        std::vector<std::string>{"port nic0:1 of this host, port nic1:1 of this host work again: 2 "
                                 "connections use them again, after 3.0 s (median), 3.0 s "
                                 "(longest)"});
  for (std::size_t i = 0; i < 40; ++i) end.leave(i, "nic" + std::to_string(i) + ":1");
  end.now_ns += kNsPerSec;
  end.log.look(end.now_ns);
  CHECK(end.captured.count(LogLevel::kWarn) == PathLog::kMostPlaces + 1);
  CHECK(end.captured.has("paths at 32 more places have failed or work again"));
}

TEST_CASE("path log: paths that are missing at connect, and are added") {
  TimedLog end;
  for (std::size_t i = 0; i < 2; ++i) {
    end.add(i, {.kind = Kind::kMissing, .place = "path 1 (h1 nic1 port 1 is DOWN)"});
    end.add(i, {.kind = Kind::kAdded, .place = place_of_port("nic1:1"), .ns = 5 * kNsPerSec});
  }
  end.now_ns += kNsPerSec;
  end.log.look(end.now_ns);
  CHECK(end.captured.has(
      "path 1 (h1 nic1 port 1 is DOWN) cannot be made now: 2 connections were made without"));
  CHECK(
      end.captured.has("port nic1:1 of this host works: 2 connections, made without it, use it "
                       "now, after 5.0 s (median), 5.0 s (longest)"));
  CHECK(end.captured.count(LogLevel::kWarn) == 2);
}

TEST_CASE("path log: connections without a path have one line for each time that they tell") {
  TimedLog end;
  for (std::size_t i = 0; i < 2; ++i) {
    end.add(i, {.kind = Kind::kStopped, .place = place_of_port("nic0:1"), .what = " went DOWN"});
    end.add(i, {.kind = Kind::kStillWaits,
                .what = "port nic0:1 of this host went DOWN",
                .ns = 10 * kNsPerSec});
  }
  end.now_ns += kNsPerSec;
  end.log.look(end.now_ns);
  CHECK(
      end.captured.has("port nic0:1 of this host went DOWN: 2 connections wait, because no other "
                       "path works"));
  CHECK(
      end.captured.has("2 connections have waited for 10.0 s, because no path works: port nic0:1 "
                       "of this host went DOWN"));
  CHECK(end.captured.count(LogLevel::kWarn) == 2);
}

TEST_CASE("path log: the first connection that ends with a peer warns at once, the others later") {
  TimedLog end;
  end.leave(0, "nic0:1");
  for (const char* const name : {"a", "b", "c"}) {
    end.log.add_end("h2 (pid 4711)", std::string(name) + ": cannot go on: port gone", end.now_ns);
  }
  REQUIRE(end.captured.count(LogLevel::kWarn) == 2);
  CHECK(end.captured.lines()[0].text.find("went DOWN: 1 connection") != std::string::npos);
  CHECK(end.captured.lines()[1].text.ends_with("a: cannot go on: port gone"));
  CHECK(end.captured.count(LogLevel::kInfo) == 2);
  end.captured.clear();
  end.now_ns += kNsPerSec;
  end.log.look(end.now_ns);
  CHECK(end.captured.has("2 connections more with h2 (pid 4711) have ended with an error since"));
  end.log.add_end("h2 (pid 4711)", "d: cannot go on", end.now_ns);
  CHECK(end.captured.count(LogLevel::kWarn) == 2);
}

TEST_CASE("path log: what was gathered is not lost at the end") {
  TimedLog end;
  end.leave(0, "nic0:1");
  end.log.flush(end.now_ns);
  CHECK(end.take_lines().size() == 1);
  end.log.flush(end.now_ns);
  CHECK(end.take_lines().empty());
}

}  // namespace
}  // namespace beeline
