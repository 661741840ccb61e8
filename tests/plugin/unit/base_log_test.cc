// SPDX-License-Identifier: Apache-2.0
//
// Log lines: their text and level as the sink gets them, and rate limits.
#include "common/base/log.h"

#include <cerrno>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/log_capture.h"

namespace beeline {
namespace {

using test::LogCapture;

void spoil_errno(int, unsigned long, const char*, int, const char*, ...) { errno = EIO; }

TEST_CASE("log: a warning goes to every subsystem, with the plugin's name in front",
          "[unit][base]") {
  const LogCapture log;
  BL_WARN("device %s port %d", "mlx5_0", 1);
  const int line = __LINE__ - 1;
  REQUIRE(log.lines().size() == 1);
  const LogCapture::Line said = log.lines().front();
  CHECK(said.level == LogLevel::kWarn);
  CHECK(said.flags == kLogAll);
  CHECK(said.number == line);
  CHECK(said.text == "NET/Beeline : device mlx5_0 port 1");
}

TEST_CASE("log: an INFO line goes to its subsystem", "[unit][base]") {
  const LogCapture log;
  BL_INFO(kLogInit | kLogNet, "2 devices");
  REQUIRE(log.lines().size() == 1);
  CHECK(log.lines().front().level == LogLevel::kInfo);
  CHECK(log.lines().front().flags == 0x11);
}

TEST_CASE("log: a per cent sign in an argument is kept", "[unit][base]") {
  const LogCapture log;
  BL_WARN("%s", "100%s %n");
  CHECK(log.lines().at(0).text == "NET/Beeline : 100%s %n");
}

TEST_CASE("log: without a sink nothing happens, and a capture restores the old sink",
          "[unit][base]") {
  REQUIRE(log_sink() == nullptr);
  BL_WARN("nobody hears this");
  {
    const LogCapture outer;
    {
      const LogCapture inner;
      BL_WARN("heard inside");
      CHECK(inner.count("heard") == 1);
    }
    BL_WARN("heard outside");
    CHECK(outer.count("heard") == 1);
  }
  CHECK(log_sink() == nullptr);
}

TEST_CASE("log: a line that is too long is cut and says so", "[unit][base]") {
  const LogCapture log;
  const std::string prefix = "NET/Beeline : ";
  const std::string fits(kLogLineBytes - 1 - prefix.size(), 'x');
  BL_WARN("%s", fits.c_str());
  BL_WARN("%sy", fits.c_str());
  CHECK(log.lines().at(0).text == prefix + fits);
  CHECK(log.lines().at(1).text == prefix + fits.substr(3) + "...");
}

TEST_CASE("log: errno is not changed", "[unit][base]") {
  set_log_sink(&spoil_errno);
  errno = ENOENT;
  BL_WARN("open it");
  const int after = errno;
  set_log_sink(nullptr);
  CHECK(after == ENOENT);
}

TEST_CASE("log: a file is named from the repository's root", "[unit][base]") {
  static_assert(std::string_view(log_file("../src/plugin/abi/calls.cc")) == "plugin/abi/calls.cc");
  static_assert(std::string_view(log_file("../src/common/gpu/gpu.cc")) == "common/gpu/gpu.cc");
  static_assert(std::string_view(log_file("log.cc")) == "log.cc");
}

TEST_CASE("log: a limited warning is logged at first, then at powers of two", "[unit][base]") {
  const LogCapture log;
  for (int i = 1; i <= 20; ++i) BL_WARN_LIMITED(3, "retry %d", i);
  std::vector<std::string> texts;
  for (const LogCapture::Line& line : log.lines()) texts.push_back(line.text);
  CHECK(texts == std::vector<std::string>{
                     "NET/Beeline : retry 1",
                     "NET/Beeline : retry 2",
                     "NET/Beeline : retry 3",
                     "NET/Beeline : retry 4 (4 times so far)",
                     "NET/Beeline : retry 8 (8 times so far)",
                     "NET/Beeline : retry 16 (16 times so far)",
                 });
}

TEST_CASE("log: each call site has a limit of its own", "[unit][base]") {
  const LogCapture log;
  for (int i = 0; i < 3; ++i) {
    BL_WARN_ONCE("here");
    BL_WARN_ONCE("there");
    BL_INFO_ONCE(kLogNet, "and %d", i);
  }
  CHECK(log.count("here") == 2);  // "there" contains it, too
  CHECK(log.count("there") == 1);
  CHECK(log.count("and 0") == 1);
  CHECK(log.lines().size() == 3);
}

TEST_CASE("log: a trace does not evaluate its arguments unless it is built in", "[unit][base]") {
  const LogCapture log;
  int evaluated = 0;
  BL_TRACE(kLogNet, "request %d", ++evaluated);
#ifdef BL_TRACE_LOG
  CHECK(evaluated == 1);
  CHECK(log.count(LogLevel::kTrace) == 1);
#else
  CHECK(evaluated == 0);
  CHECK(log.lines().empty());
#endif
}

TEST_CASE("log: threads that log at once lose nothing", "[unit][base]") {
  const LogCapture log;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 100; ++i) BL_INFO(kLogNet, "thread %d line %d.", t, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(log.lines().size() == 400);
  CHECK(log.count("thread 3 line 99.") == 1);
}

}  // namespace
}  // namespace beeline
