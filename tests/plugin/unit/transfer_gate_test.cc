// SPDX-License-Identifier: Apache-2.0
//
// A data thread and a control thread at the gate of one comm.
#include "plugin/transfer/comm_gate.h"

#include <atomic>
#include <cstdint>
#include <thread>

#include "tests/support/catch.h"

namespace beeline {
namespace {

constexpr int kLeastCalls = 50'000;
constexpr int kLeastTakeovers = 200'000;
// How long a thread stays on the path, and away from it, so that two can be seen to meet there.
constexpr int kStay = 200;
constexpr int kAbsence = 50;

// Stands for the counters of a path. Plain words: ThreadSanitizer reports a thread that touches
// them beside the other, and so does the count, mostly.
struct Path {
  std::uint64_t used = 0;
  std::uint64_t used_too = 0;

  void use() noexcept {
    ++used;
    ++used_too;
  }
};

void spin(int rounds) noexcept {
  for (int i = 0; i < rounds; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
}

struct Scene {
  CommGate gate{Role::kSend, false};
  Path path;
  std::atomic<int> inside{0};
  std::atomic<int> meetings{0};  // of both threads on the path

  void use_path() noexcept {
    if (inside.fetch_add(1, std::memory_order_relaxed) != 0) meetings.fetch_add(1);
    path.use();
    spin(kStay);
    inside.fetch_sub(1, std::memory_order_relaxed);
  }
  // As isend does it. True: the call was made.
  bool call() noexcept {
    gate.enter();
    if (gate.is_alarmed() && gate.is_taken()) {
      gate.leave();
      return false;
    }
    use_path();
    gate.leave();
    return true;
  }
};

TEST_CASE("gate: the control thread gets into an idle comm, and no other", "[unit][transfer]") {
  Scene scene;
  SECTION("idle") {
    REQUIRE(scene.gate.try_take());
    CHECK(scene.gate.is_alarmed());
    CHECK(scene.gate.is_taken());
    CHECK_FALSE(scene.gate.try_take());
    CHECK_FALSE(scene.call());
    scene.gate.give_back();
    CHECK_FALSE(scene.gate.is_taken());
    CHECK(scene.call());
  }
  SECTION("a call is in progress, or its request is not finished") {
    scene.gate.enter();
    CHECK_FALSE(scene.gate.try_take());
    CHECK_FALSE(scene.gate.is_taken());
    scene.gate.leave();
    CHECK(scene.gate.try_take());
  }
}

TEST_CASE("gate: an alarm outlasts the control thread's stay", "[unit][transfer]") {
  Scene scene;
  SECTION("raised before it") {
    scene.gate.raise_alarm();
    REQUIRE(scene.gate.try_take());
  }
  SECTION("raised during it") {
    REQUIRE(scene.gate.try_take());
    scene.gate.raise_alarm();
    CHECK(scene.gate.is_taken());
  }
  SECTION("of the link") {
    REQUIRE(scene.gate.try_take());
    scene.gate.word().fetch_or(CommGate::kLinkHasNews);
  }
  scene.gate.give_back();
  CHECK(scene.gate.is_alarmed());
  CHECK_FALSE(scene.gate.is_taken());
}

TEST_CASE("gate: either thread can lower the alarm", "[unit][transfer]") {
  Scene scene;
  scene.gate.raise_alarm();
  CHECK(scene.gate.is_raised());
  SECTION("the data thread") { scene.gate.lower_alarm(); }
  SECTION("the control thread") {
    REQUIRE(scene.gate.try_take());
    scene.gate.lower_alarm();
    CHECK(scene.gate.is_taken());
    scene.gate.give_back();
  }
  CHECK_FALSE(scene.gate.is_raised());
  CHECK(scene.call());
}

TEST_CASE("gate: a comm without alarm is fast for its role and its number of paths",
          "[unit][transfer]") {
  const Role role = GENERATE(Role::kSend, Role::kReceive);
  const Role other = role == Role::kSend ? Role::kReceive : Role::kSend;
  const bool has_several = GENERATE(false, true);
  const Paths paths = has_several ? Paths::kSeveral : Paths::kOne;
  CommGate gate(role, has_several);
  CHECK(gate.is_fast(role, paths));
  CHECK_FALSE(gate.is_fast(role, has_several ? Paths::kOne : Paths::kSeveral));
  CHECK_FALSE(gate.is_fast(other, paths));
  CHECK_FALSE(gate.is_alarmed());
  SECTION("a path fails") {
    gate.set_has_several_paths();
    CHECK(gate.is_fast(role, Paths::kSeveral));
    return;
  }
  CHECK_FALSE(gate.has_more_after_poll());
  SECTION("flushes in test") {
    gate.set_flushes_in_test();
    CHECK(gate.has_more_after_poll());
    CHECK_FALSE(gate.is_alarmed());
  }
  SECTION("receives are counted") {
    gate.set_must_recount();
    CHECK(gate.has_more_after_poll());
    CHECK_FALSE(gate.flushes_in_test());
    CHECK_FALSE(gate.is_alarmed());
    gate.clear_must_recount();
    CHECK_FALSE(gate.has_more_after_poll());
    CHECK(gate.is_fast(role, paths));
    return;
  }
  SECTION("an alarm") {
    gate.raise_alarm();
    CHECK(gate.is_alarmed());
  }
  CHECK_FALSE(gate.is_fast(role, paths));
  CHECK_FALSE(gate.is_fast(other, paths));
}

TEST_CASE("gate: a closed comm is not taken", "[unit][transfer]") {
  Scene scene;
  scene.gate.close();
  CHECK_FALSE(scene.gate.try_take());
}

TEST_CASE("gate: the two threads never meet on the path", "[unit][transfer]") {
  Scene scene;
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0};
  std::thread data([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      if (scene.call()) calls.fetch_add(1, std::memory_order_relaxed);
      spin(kAbsence);
    }
  });
  int takeovers = 0;
  while (takeovers < kLeastTakeovers || calls.load(std::memory_order_relaxed) < kLeastCalls) {
    if (!scene.gate.try_take()) continue;
    scene.use_path();
    ++takeovers;
    scene.gate.give_back();
  }
  stop = true;
  data.join();
  CHECK(scene.meetings == 0);
  CHECK(scene.path.used == scene.path.used_too);
  CHECK(scene.path.used == static_cast<std::uint64_t>(calls + takeovers));
}

}  // namespace
}  // namespace beeline
