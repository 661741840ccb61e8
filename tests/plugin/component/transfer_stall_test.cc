// SPDX-License-Identifier: Apache-2.0
//
// A path that neither works nor fails: no completion arrives, and no error.
#include <chrono>
#include <utility>

#include "common/base/clock.h"
#include "plugin/transfer/stall_watch.h"
#include "tests/plugin/component/poll_hook.h"
#include "tests/plugin/component/transfer_rig.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"

namespace beeline::test {
namespace {

constexpr std::int64_t kLimit = 40 * kNsPerMs;

int nothing(ibv_cq*, int, ibv_wc*) { return 0; }

// Tests the request until it fails.
Error wait_for_error(Request& request) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < deadline) {
    const auto done = test_once(request, nullptr);
    if (!done) return done.error();
  }
  throw MustError("a request that can never be done did not fail");
}

TEST_CASE("stall: a send that never completes fails, and the log says why",
          "[component][transfer]") {
  TransferRig rig({.stall_ns = kLimit});
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64);
  rig.receive(into, 64, 0);
  Request* const send = rig.send(from, 64, 0);
  const LogCapture log;
  const PollHook hook(rig.sender(), nothing);
  CHECK(wait_for_error(*send).code == Errc::kTimeout);
  CHECK(log.count("sender on ") == 1);
  CHECK(log.count("to peer faraway (pid 4711)") == 1);
  CHECK(log.count("nothing has completed for 0.0 s") == 1);
  CHECK(rig.sender_link().failure.starts_with("cannot move data: nothing has completed"));
}

// The cause comes from the peer, or else from the failed completion.
TEST_CASE("stall: after a device error the log does not say that nothing has completed",
          "[component][transfer]") {
  TransferRig rig({.stall_ns = kLimit});
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64);
  rig.receive(into, 64, 0);
  Request* const send = rig.send(from, 64, 0);
  const LogCapture log;
  bool has_failed = false;
  const PollHook hook(rig.sender(), [&](ibv_cq*, int, ibv_wc* wc) {
    if (std::exchange(has_failed, true)) return 0;
    *wc = {};
    wc->status = IBV_WC_RETRY_EXC_ERR;
    return 1;
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(5 * kLimit);
  while (std::chrono::steady_clock::now() < end) REQUIRE(test_once(*send, nullptr));
  rig.sender_link().peer_dies("its process ended without goodbye");
  CHECK(wait_for_error(*send).code == Errc::kPeerClosed);
  CHECK(log.count("before, a send from ") == 1);
  CHECK(log.count("nothing has completed") == 0);
}

// The peer sends nothing, for which it may have good reasons, and the path answers probes.
TEST_CASE("stall: a receiver that waits on a working path keeps waiting", "[component][transfer]") {
  TransferRig rig({.stall_ns = kLimit});
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64);
  Request* const receive = rig.receive(into, 64, 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(5 * kLimit);
  int polled = 0;
  {
    const PollHook hook(rig.receiver(), [&](ibv_cq* cq, int room, ibv_wc* wc) {
      const int found = PollHook::real(cq, room, wc);
      polled += found;
      return found;
    });
    while (std::chrono::steady_clock::now() < end) {
      const auto done = test_once(*receive, nullptr);
      REQUIRE(done);
      REQUIRE_FALSE(*done);
    }
  }
  CHECK(polled > 0);  // completions of probes, since nothing else was signaled
  rig.finish(rig.send(from, 64, 0));
  CHECK(rig.finish(receive) == 64);
}

TEST_CASE("stall: time during which nobody polled does not count", "[unit][transfer]") {
  StallWatch watch(kLimit);
  CHECK(watch.judge(1000) == StallWatch::Verdict::kCalm);
  // The process was stopped for an hour.
  CHECK(watch.judge(3600 * kNsPerSec) == StallWatch::Verdict::kCalm);
  CHECK(watch.judge(3600 * kNsPerSec + kLimit / 5) == StallWatch::Verdict::kCalm);
  CHECK(watch.judge(3600 * kNsPerSec + 2 * kLimit / 5) == StallWatch::Verdict::kQuiet);
  CHECK(watch.judge(3600 * kNsPerSec + 3 * kLimit / 5) == StallWatch::Verdict::kQuiet);
  watch.moved();
  CHECK(watch.judge(3600 * kNsPerSec + 4 * kLimit / 5) == StallWatch::Verdict::kCalm);
  CHECK(watch.judge(3600 * kNsPerSec + 5 * kLimit / 5) == StallWatch::Verdict::kCalm);
  CHECK(watch.judge(3600 * kNsPerSec + 6 * kLimit / 5) == StallWatch::Verdict::kQuiet);
  CHECK(watch.judge(3600 * kNsPerSec + 7 * kLimit / 5) == StallWatch::Verdict::kQuiet);
  CHECK(watch.judge(3600 * kNsPerSec + 8 * kLimit / 5) == StallWatch::Verdict::kQuiet);
  CHECK(watch.judge(3600 * kNsPerSec + 9 * kLimit / 5) == StallWatch::Verdict::kStalled);
}

TEST_CASE("stall: without a limit there is no stall", "[unit][transfer]") {
  StallWatch watch(0);
  for (std::int64_t now = 0; now < 100; ++now) {
    CHECK(watch.judge(now * 3600 * kNsPerSec) == StallWatch::Verdict::kCalm);
  }
}

}  // namespace
}  // namespace beeline::test
