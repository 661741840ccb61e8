// SPDX-License-Identifier: Apache-2.0
//
// The rules of the scheduler, one by one. What they achieve together is in
// transfer_scheduler_traffic_test.cc.
#include "plugin/transfer/scheduler.h"

#include <array>
#include <cstdint>
#include <vector>

#include "common/base/clock.h"
#include "tests/support/catch.h"

namespace beeline {
namespace {

constexpr std::uint32_t kChunk = 64U << 10;
constexpr PathMask kAll = 0xFF;

// A scheduler and the time. Nothing completes unless a test says so.
struct Desk {
  Scheduler scheduler;
  std::int64_t now_ns = kNsPerSec;

  explicit Desk(const std::vector<PathGuess>& paths) : scheduler(paths) {
    // So that no path has been unused for long.
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const auto path = static_cast<std::uint8_t>(i);
      scheduler.posted(path, 1, now_ns);
      scheduler.completed(path, 1, now_ns);
    }
  }
  // Posts all that split() gives in one call. Returns the chunks by path.
  std::array<std::uint32_t, 8> split(std::uint32_t chunks, PathMask usable = kAll,
                                     std::uint32_t chunk_bytes = kChunk) {
    std::array<std::uint32_t, 8> result{};
    Scheduler::Shares shares;
    const unsigned count = scheduler.split(usable, chunks, chunk_bytes, now_ns, shares);
    for (unsigned i = 0; i < count; ++i) {
      CHECK(shares[i].chunks != 0);
      CHECK(result[shares[i].path] == 0);
      result[shares[i].path] = shares[i].chunks;
      scheduler.posted(shares[i].path, std::uint64_t{shares[i].chunks} * chunk_bytes, now_ns);
    }
    return result;
  }
  std::uint8_t choose(std::uint64_t bytes, PathMask usable = kAll) {
    const std::uint8_t path = scheduler.choose(usable, bytes, now_ns);
    scheduler.posted(path, bytes, now_ns);
    return path;
  }
  // Path by path, as their rates say: the given bytes in that time.
  void carry(std::uint8_t path, std::uint64_t bytes, std::int64_t ns) {
    scheduler.posted(path, bytes, now_ns);
    scheduler.completed(path, bytes, now_ns + ns);
  }
};

using Chunks = std::array<std::uint32_t, 8>;

const std::vector<PathGuess> kFourToOne = {{.speed_mbps = 4000, .group = 0},
                                           {.speed_mbps = 1000, .group = 1}};
const std::vector<PathGuess> kEqualPair = {{.speed_mbps = 100'000, .group = 0},
                                           {.speed_mbps = 100'000, .group = 1}};
// Two rails with two queue pairs each.
const std::vector<PathGuess> kTwoByTwo = {{.speed_mbps = 100'000, .group = 0},
                                          {.speed_mbps = 100'000, .group = 1},
                                          {.speed_mbps = 100'000, .group = 0},
                                          {.speed_mbps = 100'000, .group = 1}};

}  // namespace

TEST_CASE("scheduler: a message is split by the rates") {
  Desk desk(kFourToOne);
  CHECK(desk.split(5) == Chunks{4, 1});
}

TEST_CASE("scheduler: all paths finish at the same time") {
  Desk desk(kEqualPair);
  desk.scheduler.posted(0, std::uint64_t{4} * kChunk, desk.now_ns);
  CHECK(desk.split(2) == Chunks{0, 2});
  CHECK(desk.split(4) == Chunks{1, 3});
}

TEST_CASE("scheduler: odd chunks go where they finish first") {
  Desk desk(kFourToOne);
  CHECK(desk.split(1) == Chunks{1, 0});
  CHECK(desk.split(1) == Chunks{1, 0});
  CHECK(desk.split(1) == Chunks{1, 0});
  CHECK(desk.split(2) == Chunks{1, 1});
}

TEST_CASE("scheduler: paths that cannot be used get nothing") {
  Desk desk(kEqualPair);
  CHECK(desk.split(2, 0b10) == Chunks{0, 2});
  CHECK(desk.choose(64, 0b10) == 1);
  CHECK(desk.choose(64, 0b10) == 1);
}

TEST_CASE("scheduler: what a path may not hold is assigned when something completes") {
  Desk desk(kEqualPair);
  // Each path may hold eight chunks, and gets half of that at a time.
  CHECK(desk.split(64) == Chunks{4, 4});
  CHECK(desk.split(56) == Chunks{4, 4});
  CHECK(desk.split(48) == Chunks{});
  desk.now_ns += 20 * kNsPerUs;
  desk.scheduler.completed(1, std::uint64_t{4} * kChunk, desk.now_ns);
  CHECK(desk.split(48) == Chunks{0, 4});
  CHECK(desk.split(44) == Chunks{});
}

TEST_CASE("scheduler: an idle path gets a chunk, however large that is") {
  Desk desk(kEqualPair);
  CHECK(desk.split(2, kAll, 16U << 20) == Chunks{1, 1});
}

TEST_CASE(
    "scheduler: each part of a message uses one path of each rail, the one with the least "
    "outstanding") {
  Desk desk(kTwoByTwo);
  CHECK(desk.split(2) == Chunks{1, 1, 0, 0});
  CHECK(desk.split(2) == Chunks{0, 0, 1, 1});
  desk.scheduler.completed(1, kChunk, desk.now_ns);
  desk.scheduler.completed(2, kChunk, desk.now_ns);
  CHECK(desk.split(2) == Chunks{0, 1, 1, 0});
}

TEST_CASE("scheduler: paths of one rail have one rate") {
  Desk desk(kTwoByTwo);
  for (int i = 0; i < 10; ++i) {
    desk.carry(0, kChunk, kNsPerMs);
    desk.now_ns += 2 * kNsPerMs;
  }
  CHECK(desk.scheduler.rate(0, desk.now_ns) == desk.scheduler.rate(2, desk.now_ns));
  CHECK(desk.scheduler.rate(0, desk.now_ns) < desk.scheduler.rate(1, desk.now_ns) / 10);
}

TEST_CASE("scheduler: a small message takes the path that finishes it first") {
  Desk desk(kFourToOne);
  int fast = 0;
  for (int i = 0; i < 50; ++i) fast += desk.choose(8192) == 0;
  CHECK(fast >= 39);
  CHECK(fast <= 41);
}

TEST_CASE("scheduler: equal paths take turns with small messages") {
  Desk desk(kEqualPair);
  const std::uint8_t first = desk.choose(64);
  desk.scheduler.completed(first, 64, desk.now_ns);
  const std::uint8_t second = desk.choose(64);
  CHECK(first != second);
}

TEST_CASE("scheduler: a path that is late gets no small message") {
  Desk desk(kEqualPair);
  const std::uint8_t stuck = desk.choose(8192);
  desk.now_ns += kNsPerMs;
  for (int i = 0; i < 20; ++i) CHECK(desk.choose(8192) != stuck);
}

TEST_CASE("scheduler: a path that gets nothing is probed every 10 ms") {
  // The slow one is not worth a chunk, but a probe costs little.
  Desk desk({{.speed_mbps = 100'000, .group = 0}, {.speed_mbps = 5'000, .group = 1}});
  CHECK(desk.split(2) == Chunks{2, 0});
  desk.scheduler.completed(0, std::uint64_t{2} * kChunk, desk.now_ns);
  desk.now_ns += 9 * kNsPerMs;
  CHECK(desk.split(2) == Chunks{2, 0});
  desk.scheduler.completed(0, std::uint64_t{2} * kChunk, desk.now_ns);
  desk.now_ns += kNsPerMs;
  CHECK(desk.split(2) == Chunks{1, 1});
  CHECK(desk.split(2) == Chunks{2, 0});
}

TEST_CASE("scheduler: probes that delay a message are rare") {
  // A chunk takes 5 ms on the slow path.
  Desk desk({{.speed_mbps = 100'000, .group = 0}, {.speed_mbps = 100, .group = 1}});
  desk.now_ns += 20 * kNsPerMs;
  CHECK(desk.split(2) == Chunks{2, 0});
  desk.scheduler.completed(0, std::uint64_t{2} * kChunk, desk.now_ns);
  desk.now_ns += 150 * kNsPerMs;
  CHECK(desk.split(2) == Chunks{1, 1});
}

TEST_CASE("scheduler: small messages probe, too") {
  Desk desk({{.speed_mbps = 100'000, .group = 0}, {.speed_mbps = 1'000, .group = 1}});
  for (int i = 0; i < 4; ++i) {
    CHECK(desk.choose(4096) == 0);
    desk.scheduler.completed(0, 4096, desk.now_ns);
  }
  desk.now_ns += 10 * kNsPerMs;
  CHECK(desk.choose(4096) == 1);
  CHECK(desk.choose(4096) == 0);
}

TEST_CASE("scheduler: ports that claim nothing are equal") {
  Desk desk({{.speed_mbps = 0, .group = 0}, {.speed_mbps = 0, .group = 1}});
  CHECK(desk.split(4) == Chunks{2, 2});
}

}  // namespace beeline
