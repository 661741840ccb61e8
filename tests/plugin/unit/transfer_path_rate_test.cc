// SPDX-License-Identifier: Apache-2.0
//
// What is concluded about the rate of a rail from what it completes, and when.
#include "plugin/transfer/path_rate.h"

#include <cstdint>

#include "common/base/clock.h"
#include "tests/support/catch.h"

namespace beeline {
namespace {

constexpr std::uint64_t kPiece = 256U << 10;
constexpr double kGuess = 12.5;  // bytes per ns: a port of 100 Gb/s

// A rail, and the thread that uses it.
struct Rail {
  PathRate rate{kGuess};
  double latency_ns = static_cast<double>(PathRate::kPatienceNs);
  std::int64_t now_ns = kNsPerSec;

  void post(std::uint64_t bytes) {
    measure();
    rate.posted(bytes, now_ns);
  }
  void complete(std::uint64_t bytes) {
    measure();
    rate.completed(bytes, now_ns);
  }
  void measure() {
    if (rate.is_due(now_ns)) rate.measure(latency_ns);
  }
  // Completes one piece after another, each of which is a window. Two are outstanding at any time.
  void carry(double bytes_per_ns, int pieces) {
    while (rate.outstanding() < 2 * kPiece) post(kPiece);
    for (int i = 0; i < pieces; ++i) {
      now_ns += static_cast<std::int64_t>(kPiece / bytes_per_ns) - 1;
      complete(kPiece);
      ++now_ns;
      post(kPiece);
    }
  }
};

Approx near(double bytes_per_ns) { return Approx(bytes_per_ns).epsilon(0.01); }

}  // namespace

TEST_CASE("path rate: the first window replaces the guess") {
  Rail rail;
  rail.carry(0.4, 1);
  // The first bytes had to travel; how long is not known yet.
  CHECK(rail.rate.bytes_per_ns() == Approx(0.4).epsilon(0.1));
}

TEST_CASE("path rate: two low windows lower the rate, one does not") {
  Rail rail;
  rail.carry(0.4, 4);
  rail.carry(0.1, 1);
  CHECK(rail.rate.bytes_per_ns() == near(0.4));
  rail.carry(0.4, 1);
  rail.carry(0.1, 1);
  CHECK(rail.rate.bytes_per_ns() == near(0.4));
  rail.carry(0.1, 1);
  CHECK(rail.rate.bytes_per_ns() == near(0.1));
}

TEST_CASE("path rate: one long low window lowers it, to a sixteenth at most") {
  Rail rail;
  rail.carry(0.4, 4);
  SECTION("slow") {
    rail.carry(0.03, 1);
    CHECK(rail.rate.bytes_per_ns() == near(0.03));
  }
  SECTION("it stood still") {
    rail.carry(0.001, 1);
    CHECK(rail.rate.bytes_per_ns() == near(0.4 / 16));
  }
}

TEST_CASE("path rate: one window raises it by a quarter at most") {
  Rail rail;
  rail.carry(0.1, 4);
  rail.carry(0.4, 1);
  CHECK(rail.rate.bytes_per_ns() == near(0.125));
  rail.carry(0.4, 7);
  CHECK(rail.rate.bytes_per_ns() == near(0.4));
}

TEST_CASE("path rate: a rail with little to do keeps it") {
  Rail rail;
  const std::int64_t latency_ns = 10 * kNsPerUs;
  for (int i = 0; i < 10'000; ++i) {
    rail.post(4096);
    rail.now_ns += latency_ns;
    rail.complete(4096);
    rail.now_ns += kNsPerUs;
  }
  CHECK(rail.rate.bytes_per_ns() == near(kGuess));
}

TEST_CASE("path rate: completions of one poll belong to one window") {
  Rail rail;
  rail.carry(0.4, 4);
  // The thread was away while four pieces were carried, and finds their completions at once.
  rail.post(kPiece);
  rail.post(kPiece);
  for (int round = 0; round < 4; ++round) {
    rail.now_ns += static_cast<std::int64_t>(4 * kPiece / 0.4);
    for (int i = 0; i < 4; ++i) rail.complete(kPiece);
    for (int i = 0; i < 4; ++i) rail.post(kPiece);
    CHECK(rail.rate.bytes_per_ns() == near(0.4));
  }
}

TEST_CASE("path rate: a rail that is late counts as slower before anything completes") {
  Rail rail;
  rail.carry(0.4, 4);
  const double held = static_cast<double>(rail.rate.outstanding());
  CHECK(rail.rate.ns_per_byte(rail.now_ns + kNsPerMs) == near(1 / 0.4));
  const std::int64_t away_ns = 100 * kNsPerMs;
  CHECK(rail.rate.ns_per_byte(rail.now_ns + away_ns) == near(static_cast<double>(away_ns) / held));
}

TEST_CASE("path rate: what may be outstanding is 2 ms of it, or 512 KiB") {
  Rail rail;
  CHECK(rail.rate.most_outstanding() == 512U << 10);
  rail.carry(0.4, 4);
  CHECK(static_cast<double>(rail.rate.most_outstanding()) == near(0.4 * 2 * kNsPerMs));
  rail.carry(0.1, 4);
  CHECK(rail.rate.most_outstanding() == 512U << 10);
}

TEST_CASE("path rate: what may be outstanding grows while the rail runs dry") {
  Rail rail;
  rail.carry(0.4, 4);
  for (int i = 0; i < 10; ++i) rail.rate.ran_dry();
  CHECK(static_cast<double>(rail.rate.most_outstanding()) == near(0.4 * 16 * kNsPerMs));
  rail.carry(0.4, 3000);
  CHECK(static_cast<double>(rail.rate.most_outstanding()) == near(0.4 * 2 * kNsPerMs));
}

}  // namespace beeline
