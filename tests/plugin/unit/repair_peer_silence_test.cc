// SPDX-License-Identifier: Apache-2.0
#include "plugin/repair/peer_silence.h"

#include "tests/support/catch.h"

namespace beeline {
namespace {

using Judged = PeerSilence::Verdict;
using Facts = PeerSilence::Facts;

constexpr PeerSilence::Limits kLimits = {.peer_ns = 20 * times::kNsPerSec,
                                         .outage_ns = 300 * times::kNsPerSec};

// The last verdict of so many looks, one each second.
Judged after(PeerSilence& silence, std::int64_t& now, int seconds, const Facts& facts,
             const PeerSilence::Limits& limits = kLimits) {
  Judged verdict = Judged::kWait;
  for (int i = 0; i < seconds; ++i)
    verdict = silence.look(now += times::kNsPerSec, 0, limits, facts);
  return verdict;
}

}  // namespace

TEST_CASE("silence: a peer that nothing is heard of is dead, if this host is heard", "[silence]") {
  const Facts facts = GENERATE(Facts{}, Facts{.has_other_hosts = true, .hears_others = true});
  std::int64_t now = 1000 * times::kNsPerSec;
  PeerSilence silence;
  silence.begin(now, 5 * times::kNsPerSec, 0);
  CHECK(after(silence, now, 14, facts) == Judged::kWait);
  CHECK(after(silence, now, 1, facts) == Judged::kDead);
}

TEST_CASE("silence: while the network may be at fault, a peer is waited for longer", "[silence]") {
  const Facts facts =
      GENERATE(Facts{.are_own_ports_down = true},
               Facts{.are_own_ports_down = true, .has_other_hosts = true, .hears_others = true},
               Facts{.has_other_hosts = true});
  std::int64_t now = 1000 * times::kNsPerSec;
  PeerSilence silence;
  silence.begin(now, 0, 0);
  CHECK(after(silence, now, 19, facts) == Judged::kWait);
  CHECK(after(silence, now, 1, facts) == Judged::kWaitForNetwork);
  CHECK(after(silence, now, 279, facts) == Judged::kWaitForNetwork);
  CHECK(after(silence, now, 1, facts) == Judged::kOutageTooLong);
  // The network is back. This peer may be the last one that is.
  CHECK(after(silence, now, 19, Facts{}) == Judged::kWait);
  CHECK(after(silence, now, 1, Facts{}) == Judged::kDead);

  PeerSilence unlimited;
  unlimited.begin(now, 0, 0);
  CHECK(after(unlimited, now, 5000, facts, {.peer_ns = 20 * times::kNsPerSec}) ==
        Judged::kWaitForNetwork);
}

TEST_CASE("silence: an answer, or anything that comes by a path, ends it", "[silence]") {
  std::int64_t now = 1000 * times::kNsPerSec;
  PeerSilence silence;
  silence.begin(now, 0, 7);
  CHECK(silence.look(now += 4 * times::kNsPerSec, 7, kLimits, {}) == Judged::kWait);
  CHECK(silence.is_short(kLimits));
  for (int i = 0; i < 3; ++i) (void)silence.look(now += 4 * times::kNsPerSec, 7, kLimits, {});
  CHECK_FALSE(silence.is_short(kLimits));
  CHECK(silence.look(now += 4 * times::kNsPerSec, 8, kLimits, {}) == Judged::kWait);
  CHECK(silence.is_short(kLimits));
  for (int i = 0; i < 4; ++i) (void)silence.look(now += 4 * times::kNsPerSec, 8, kLimits, {});
  silence.heard(now);
  CHECK(silence.look(now += 4 * times::kNsPerSec, 8, kLimits, {}) == Judged::kWait);
}

TEST_CASE("silence: of a time in which this process has not looked, little counts", "[silence]") {
  std::int64_t now = 1000 * times::kNsPerSec;
  PeerSilence silence;
  silence.begin(now, 0, 0);
  for (int i = 0; i < 3; ++i)
    CHECK(silence.look(now += 3600 * times::kNsPerSec, 0, kLimits, {}) == Judged::kWait);
  CHECK(silence.look(now += 3600 * times::kNsPerSec, 0, kLimits, {}) == Judged::kDead);
}

}  // namespace beeline
