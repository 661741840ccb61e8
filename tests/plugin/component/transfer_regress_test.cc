// SPDX-License-Identifier: Apache-2.0
//
// Regression tests for defects that were found by code review.
#include <utility>

#include "tests/plugin/component/poll_hook.h"
#include "tests/plugin/component/transfer_rig.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"

namespace beeline::test {
// A process may end right after its last send has completed.
TEST_CASE("transfer regress: what arrived before the peer died is received",
          "[component][transfer]") {
  TransferRig rig;
  Storage from = rig.storage(64, 0x5a);
  Storage into = rig.storage(64);
  Request* const receive = rig.receive(into, 64, 0);
  bool happened = false;
  // A test that is alarmed polls and then checks the link. The data and the news of the death
  // arrive between the two.
  rig.receiver().gate().raise_alarm();
  const PollHook hook(rig.receiver(), [&](ibv_cq* cq, int room, ibv_wc* wc) {
    const int found = PollHook::real(cq, room, wc);
    if (!std::exchange(happened, true)) {
      rig.finish(rig.send(from, 64, 0));
      rig.receiver_link().peer_dies("its process ended without goodbye");
    }
    return found;
  });
  int size = -1;
  const auto done = test_once(*receive, &size);
  REQUIRE(done);
  CHECK(*done);
  CHECK(size == 64);
}

// If it is neither sent nor refused, the caller hangs.
TEST_CASE(
    "transfer regress: a message of more chunks than the send queue holds is not put off for ever",
    "[component][transfer]") {
  TransferRig rig({.largest_write = 1024});
  Storage from = rig.storage(1 << 20, 0x33);
  Storage into = rig.storage(1 << 20);
  Request* const receive = rig.receive(into, 1 << 20, 0);
  const auto deadline = Clock::now() + kPatience;
  bool answered = false;
  while (!answered && Clock::now() < deadline) {
    const auto sent = isend(rig.sender(), from, 1 << 20, 0);
    answered = !sent || *sent != nullptr;
    if (sent && *sent != nullptr) {
      CHECK(rig.finish(*sent) == 1 << 20);
      CHECK(rig.finish(receive) == 1 << 20);
    }
  }
  CHECK(answered);
}

TEST_CASE("transfer regress: a failing local queue is not blamed on the peer",
          "[component][transfer]") {
  TransferRig rig;
  Storage into = rig.storage(64);
  Request* const receive = rig.receive(into, 64, 0);
  const LogCapture log;
  const PollHook hook(rig.receiver(), [](ibv_cq*, int, ibv_wc*) { return -1; });
  CHECK(test_once(*receive, nullptr));  // sees it
  const auto done = test_once(*receive, nullptr);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::kSystem);
  CHECK(log.count(" sent ") == 0);
}

}  // namespace beeline::test
