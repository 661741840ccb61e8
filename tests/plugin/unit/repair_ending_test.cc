// SPDX-License-Identifier: Apache-2.0
#include "plugin/repair/ending.h"

#include "tests/support/catch.h"

namespace beeline {
namespace {

using Peer = Ending::Peer;
using Reason = Ending::Reason;

constexpr std::int64_t kSince = 1000 * times::kNsPerSec;
constexpr std::int64_t kInGrace = kSince + times::kGraceNs;
constexpr std::int64_t kLater = kInGrace + 1;

}  // namespace

TEST_CASE("ending: a failed request ends the comm if nothing explains it in time") {
  Ending ending;
  ending.suspect(1, kSince);
  CHECK(ending.suspects(1));
  CHECK_FALSE(ending.suspects(0));
  CHECK(ending.look(Peer::kOpen, false, kInGrace) == Reason::kNone);
  CHECK(ending.look(Peer::kOpen, false, kLater) == Reason::kRequestFailed);
  ending.forget_suspicion_of(0);
  CHECK(ending.look(Peer::kOpen, false, kLater) == Reason::kRequestFailed);
  ending.forget_suspicion_of(1);
  CHECK(ending.look(Peer::kOpen, false, kLater) == Reason::kNone);
}

TEST_CASE("ending: a peer that died ends the comm at once, and explains a failed request") {
  Ending ending;
  ending.suspect(0, kSince);
  CHECK(ending.look(Peer::kDead, false, kSince) == Reason::kPeerDied);
}

TEST_CASE("ending: what a peer had sent before its goodbye has some time to arrive") {
  Ending ending;
  const bool was_suspected = GENERATE(false, true);
  if (was_suspected) ending.suspect(0, kSince - times::kGraceNs);
  ending.begin_goodbye(kSince);
  CHECK(ending.look(Peer::kClosed, true, kInGrace) == Reason::kNone);
  CHECK(ending.look(Peer::kClosed, true, kLater) ==
        (was_suspected ? Reason::kRequestFailed : Reason::kDataMissing));
  CHECK(ending.look(Peer::kClosed, false, kLater) == Reason::kNone);
}

TEST_CASE("ending: only the same message on another path shows a fault of the program") {
  Ending ending;
  CHECK_FALSE(ending.follows_message(0, 7, times::kNsPerSec));
  CHECK_FALSE(ending.follows_message(0, 7, 2 * times::kNsPerSec));   // the same path again
  CHECK_FALSE(ending.follows_message(1, 8, 3 * times::kNsPerSec));   // another message
  CHECK_FALSE(ending.follows_message(1, {}, 4 * times::kNsPerSec));  // it is not known which
  CHECK(ending.follows_message(0, {}, 5 * times::kNsPerSec));
  CHECK_FALSE(ending.follows_message(0, 9, 6 * times::kNsPerSec));
  CHECK(ending.follows_message(1, 9, 16 * times::kNsPerSec));
  CHECK_FALSE(
      ending.follows_message(0, 9, 26 * times::kNsPerSec + 1));  // a later one with this number
}

// The other end fences the path each time, because the message breaks its queue pair.
TEST_CASE("ending: a message that fails each time it is sent ends the comm, also by one path") {
  Ending ending;
  std::int64_t now_ns = kSince;
  for (int times = 1; times <= 3; ++times) {
    CHECK_FALSE(ending.follows_message(0, 7, now_ns));
    ending.suspect(0, now_ns);
    ending.forget_suspicion_of(0);
    now_ns += times::kNsPerSec;
  }
  CHECK(ending.follows_message(0, 7, now_ns));
  ending.suspect(0, now_ns);
  ending.forget_suspicion_of(0);
  CHECK(ending.look(Peer::kOpen, false, now_ns + times::kGraceNs + 1) == Reason::kRequestFailed);
}

}  // namespace beeline
