// SPDX-License-Identifier: Apache-2.0
//
// Tests what WaitWatch concludes that one end of a comm waits for.
#include "plugin/transfer/wait_watch.h"

#include "tests/support/catch.h"

namespace beeline {
namespace {

constexpr std::int64_t kStart = 1000 * kNsPerSec;

// Looks once a second, and answers as an application that makes calls, or none.
struct Watched {
  explicit Watched(Role role) : watch(role) { look({.progress = 1}); }

  Waiting look(WaitWatch::Sight sight) {
    now += kNsPerSec;
    if (!calls_overlap) sight.requests_then = sight.requests;
    return watch.look(sight, now);
  }
  Wait what(std::uint64_t requests, bool is_answered, bool has_path = true) {
    Waiting waiting;
    for (int i = 0; i < 5; ++i) {
      waiting = look({.progress = 1,
                      .requests = requests,
                      .is_answered = is_answered && watch.must_ask(),
                      .has_path = has_path});
    }
    return waiting.what;
  }

  WaitWatch watch;
  bool calls_overlap = false;  // a look often meets a call, which counts as a request
  std::int64_t now = kStart;
};

TEST_CASE("wait watch: a call, or none, and open requests say what an end waits for",
          "[unit][transfer]") {
  SECTION("the sender") {
    Watched sender(Role::kSend);
    CHECK(sender.what(0, false) == Wait::kNothing);
    CHECK(sender.what(0, true) == Wait::kCredit);
    CHECK(sender.what(3, true) == Wait::kAcknowledgment);
    CHECK(sender.what(3, false) == Wait::kTest);
    CHECK(sender.what(3, true, false) == Wait::kPath);
    CHECK(sender.what(0, true, false) == Wait::kPath);
  }
  SECTION("the receiver") {
    Watched receiver(Role::kReceive);
    CHECK(receiver.what(0, false) == Wait::kNothing);
    CHECK(receiver.what(0, true) == Wait::kNothing);
    CHECK(receiver.what(2, true) == Wait::kData);
    CHECK(receiver.what(2, false) == Wait::kTest);
    CHECK(receiver.what(2, true, false) == Wait::kPath);
  }
}

TEST_CASE("wait watch: a call in progress is no open request", "[unit][transfer]") {
  Watched sender(Role::kSend);
  sender.calls_overlap = true;
  CHECK(sender.what(1, true) == Wait::kCredit);
}

TEST_CASE("wait watch: nothing is said before the application was asked", "[unit][transfer]") {
  Watched receiver(Role::kReceive);
  CHECK_FALSE(receiver.watch.must_ask());
  CHECK(receiver.look({.progress = 1, .requests = 1}).what == Wait::kNothing);
  CHECK(receiver.watch.must_ask());
  // A thread that calls may not run for a while.
  CHECK(receiver.look({.progress = 1, .requests = 1}).what == Wait::kNothing);
  CHECK(receiver.look({.progress = 1, .requests = 1}).what == Wait::kNothing);
  const Waiting waiting = receiver.look({.progress = 1, .requests = 1});
  CHECK(waiting.what == Wait::kTest);
  CHECK(waiting.since_ns == receiver.now - WaitWatch::kSilentNs);
}

TEST_CASE("wait watch: a wait begins when it is first seen, and ends with any progress",
          "[unit][transfer]") {
  Watched sender(Role::kSend);
  // Idle for a while: no call, no request.
  for (int i = 0; i < 100; ++i) CHECK(sender.look({.progress = 1}).what == Wait::kNothing);
  const Waiting first = sender.look({.progress = 1, .is_answered = true});
  CHECK(first.what == Wait::kCredit);
  CHECK(first.since_ns == sender.now);
  const std::int64_t begun = sender.now;
  // Another reason in between does not begin anew.
  CHECK(sender.look({.progress = 1, .requests = 2, .is_answered = true}).since_ns == begun);
  // Nor does a call that is late.
  CHECK(sender.look({.progress = 1, .requests = 2}).what == Wait::kAcknowledgment);
  CHECK(sender.look({.progress = 1, .requests = 2}).what == Wait::kAcknowledgment);
  const Waiting last = sender.look({.progress = 1, .requests = 4});
  CHECK(last.what == Wait::kTest);
  CHECK(last.since_ns == begun);
  CHECK(last.requests == 4);
  CHECK(sender.look({.progress = 2, .requests = 4}).what == Wait::kNothing);
  CHECK_FALSE(sender.watch.must_ask());
}

TEST_CASE("wait watch: the time in which the process was stopped does not count",
          "[unit][transfer]") {
  Watched sender(Role::kSend);
  CHECK(sender.what(0, true) == Wait::kCredit);
  sender.now += WaitWatch::kMostBetweenLooksNs;
  CHECK(sender.look({.progress = 1, .is_answered = true}).what == Wait::kNothing);
  CHECK(sender.what(0, true) == Wait::kCredit);
}

}  // namespace
}  // namespace beeline
