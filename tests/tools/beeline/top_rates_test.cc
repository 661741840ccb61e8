// SPDX-License-Identifier: Apache-2.0
//
// Rates between two looks at the statistics pages, and the text of `beeline top`.
#include "common/base/clock.h"
#include "tests/support/catch.h"
#include "tools/top/screen.h"

namespace beeline::top {
namespace {

using Catch::Matchers::Contains;
using pages::Life;

constexpr std::int64_t kStart = 1000 * kNsPerSec;
constexpr std::int64_t kSeconds = 2;

SlotView connection(std::uint64_t id, SlotRole role, std::uint64_t bytes,
                    std::vector<PathView> paths) {
  SlotView slot = {};
  slot.id = id;
  slot.role = role;
  slot.state = SlotState::kReady;
  slot.peer_host = "n2";
  slot.peer_device = "mlx5_0:1";
  slot.peer_pid = 4711;
  slot.counters[static_cast<std::size_t>(Counter::kBytes)] = bytes;
  slot.counters[static_cast<std::size_t>(Counter::kMessages)] = bytes / 1'000'000;
  slot.paths = std::move(paths);
  return slot;
}

PathView up(const char* device, std::uint64_t bytes) {
  return {.health = PathHealth::kUp,
          .bytes = bytes,
          .failures = 0,
          .device = device,
          .own_device = device};
}
PathView down(const char* device, std::uint64_t bytes) {
  return {.health = PathHealth::kDown,
          .bytes = bytes,
          .failures = 3,
          .device = device,
          .own_device = device};
}

Look look(std::int64_t seconds, std::vector<SlotView> connections, Life life = Life::kRuns) {
  Look look = {.at_ns = kStart + seconds * kNsPerSec, .processes = {}};
  look.processes.push_back(
      {.pid = 100, .host = "n1", .life = life, .rank = 7, .connections = std::move(connections)});
  return look;
}

TEST_CASE("top: a connection with one path", "[tools]") {
  const Look before = look(0, {connection(1, SlotRole::kSend, 1'000'000'000, {up("a:1", 0)}),
                               connection(2, SlotRole::kReceive, 0, {up("a:1", 0)})});
  const std::vector rates = rates_between(
      before, look(kSeconds, {connection(1, SlotRole::kSend, 5'000'000'000, {up("a:1", 77)}),
                              connection(2, SlotRole::kReceive, 1'000'000'000, {up("a:1", 0)}),
                              connection(3, SlotRole::kSend, 9'000'000'000, {up("a:1", 0)})}));
  REQUIRE(rates.size() == 1);
  REQUIRE(rates[0].rails.size() == 1);
  CHECK(rates[0].rails[0].paths == 3);
  CHECK(rates[0].rails[0].send == Approx(2e9));  // the third is new, so its rate is not known
  CHECK(rates[0].rails[0].receive == Approx(0.5e9));
  CHECK(rates[0].connections[0].messages == Approx(2000));
}

TEST_CASE("top: the bytes of a connection are divided as its paths have carried them", "[tools]") {
  const auto rails = [](std::vector<PathView> paths_before, std::vector<PathView> paths) {
    const Look before = look(0, {connection(1, SlotRole::kSend, 0, std::move(paths_before))});
    return rates_between(
               before,
               look(kSeconds, {connection(1, SlotRole::kSend, 8'000'000'000, std::move(paths))}))[0]
        .rails;
  };
  SECTION("in this time") {
    const auto found = rails({up("b:1", 10), up("a:1", 90)}, {up("b:1", 20), down("a:1", 120)});
    REQUIRE(found.size() == 2);
    CHECK(found[0].device == "a:1");
    CHECK(found[0].send == Approx(3e9));
    CHECK(found[0].out_of_use == 1);
    CHECK(found[0].failures == 3);
    CHECK(found[1].send == Approx(1e9));
    CHECK(found[1].out_of_use == 0);
  }
  SECTION("before, while the paths' own counts are old") {
    const auto found = rails({up("a:1", 10), up("b:1", 30)}, {up("a:1", 10), up("b:1", 30)});
    CHECK(found[0].send == Approx(1e9));
    CHECK(found[1].send == Approx(3e9));
  }
  SECTION("not known") {
    const auto found = rails({up("a:1", 0), up("b:1", 0)}, {up("a:1", 0), up("b:1", 0)});
    CHECK(found[0].send == Approx(2e9));
    CHECK(found[1].send == Approx(2e9));
  }
}

TEST_CASE("top: processes that have ended are left out, and stopped ones are marked", "[tools]") {
  const Look before = look(0, {});
  CHECK(rates_between(before, look(1, {}, Life::kEnded)).empty());
  const std::vector rates = rates_between(before, look(1, {}, Life::kStopped));
  CHECK_THAT(text_of(rates, 0, {}), Contains("    7      100 stopped\n"));
  CHECK_THAT(text_of(rates_between(before, look(1, {})), 0, {}),
             Contains("    7      100 no connection\n"));
}

TEST_CASE("top: the screen", "[tools]") {
  const Look before = look(0, {connection(1, SlotRole::kSend, 0, {up("a:1", 0), up("b:1", 0)})});
  SlotView now = connection(1, SlotRole::kSend, 8'000'000'000, {up("a:1", 3), down("b:1", 1)});
  EventView went_down = {};
  went_down.event = Event::kPortDown;
  went_down.rail = 1;
  now.life = {went_down};
  now.waits_for = Wait::kCredit;
  now.waits_since_ns = static_cast<std::uint64_t>(kStart);
  const std::vector rates = rates_between(before, look(kSeconds, {now}));
  const auto text = [&](const Screen& screen) {
    return text_of(rates, kStart + 5 * kNsPerSec, screen);
  };
  CHECK(text({.shows_connections = true}) ==
        R"(1 process, 1 connection, 4.000 GB/s sent, 1 wait: beeline hang

 RANK      PID DEVICE           PATHS SENT GB/s RECV GB/s  SHARE FAILED  STATE
    7      100 a:1                  1     3.000     0.000    75%      0  up
               b:1                  1     1.000     0.000    25%      3  DOWN

 RANK      PID WAY  PEER                              GB/s  MESSAGES  WAITS
    7      100 to   n2:mlx5_0:1 pid 4711             4.000      4000  5 s for a receive of the peer
)");
  now.life.clear();  // the port of the other end
  CHECK_THAT(text_of(rates_between(before, look(kSeconds, {now})), kStart, {}),
             Contains("25%      3  out of use\n"));
  now.paths[1] = up("a:1", 1);
  now.paths[1].own_device = "b:1";
  now.paths[1].failures = 3;
  CHECK_THAT(
      text_of(rates_between(before, look(kSeconds, {now})), kStart, {}),
      Contains("    7      100 a:1                  2     4.000     0.000   100%      0  up\n"
               "               b:1                  0     0.000     0.000     0%      3  "
               "out of use: a:1 stands in\n"));
  CHECK_THAT(text({.columns = 20}), Contains("\n RANK      PID DEVIC\n"));
  CHECK_THAT(text({.rows = 4}), Contains("\n... 2 more lines\n"));
  CHECK_THAT(text({.has_color = true}), Contains("\033[31m               b:1"));
}

TEST_CASE("top: names from a page cannot control the terminal", "[tools]") {
  const Look before = look(0, {});
  const std::vector rates =
      rates_between(before, look(1, {connection(1, SlotRole::kSend, 0, {up("\033[2J", 0)})}));
  CHECK_THAT(text_of(rates, 0, {}), Contains("?[2J") && !Contains("\033"));
}

}  // namespace
}  // namespace beeline::top
