// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>

#include "common/base/clock.h"
#include "plugin/recovery/silence_watch.h"
#include "tests/support/catch.h"

namespace beeline {
namespace {

constexpr std::int64_t kStart = 1000 * kNsPerSec;

// Two paths whose devices answer or not, looked at as often as a waiting thread does.
class TwoPaths {
 public:
  TwoPaths() {
    for (std::size_t i = 0; i < paths.size(); ++i)
      paths[i] = {.is_up = true, .owes_answer = true, .kept = &kept_[i]};
    run(kNsPerSec, [&](std::size_t) { return true; });  // both have answered before
  }

  // `answers(i)`: whether something completes on path i in each step. Returns what was found since
  // the last call.
  template <class Answers>
  SilenceWatch::Findings run(std::int64_t duration_ns, Answers&& answers) {
    SilenceWatch::Findings all;
    for (const std::int64_t end = now + duration_ns; now < end; now += look_every_ns) {
      for (std::size_t i = 0; i < paths.size(); ++i) {
        if (answers(i)) ++paths[i].heard;
      }
      const auto found = watch.look(paths, now);
      all.silent = static_cast<std::uint8_t>(all.silent | found.silent);
      all.must_ask = all.must_ask || found.must_ask;
    }
    return all;
  }

  SilenceWatch watch;
  std::array<PathSigns, 2> paths;
  std::int64_t now = kStart;
  std::int64_t look_every_ns = times::kSilenceLookEveryNs;

 private:
  std::array<PathSilence, 2> kept_;
};

constexpr auto kNone = [](std::size_t) { return false; };
constexpr auto kFirst = [](std::size_t path) { return path == 0; };

constexpr std::int64_t kBelowLimit = times::kSilenceLeastLimitNs - 2 * times::kSilenceLookEveryNs;
constexpr std::int64_t kAboveLimit = times::kSilenceLeastLimitNs + 2 * times::kSilenceLookEveryNs;

}  // namespace

TEST_CASE("silence: a path is silent if nothing completes on it while another works") {
  TwoPaths two;
  CHECK(two.run(kBelowLimit, kFirst).silent == 0);
  CHECK(two.run(kAboveLimit - kBelowLimit, kFirst).silent == 2);
}

TEST_CASE("silence: no path is silent if all are") {
  TwoPaths two;
  const auto found = two.run(kNsPerSec, kNone);
  CHECK(found.silent == 0);
  CHECK(found.must_ask);
}

TEST_CASE("silence: one path alone is never silent") {
  TwoPaths two;
  two.paths[0].is_up = false;
  CHECK(two.run(kNsPerSec, kFirst).silent == 0);
}

TEST_CASE("silence: a path that owes nothing is not silent") {
  TwoPaths two;
  two.paths[1].owes_answer = false;
  const auto found = two.run(kNsPerSec, kFirst);
  CHECK(found.silent == 0);
  CHECK_FALSE(found.must_ask);
}

TEST_CASE("silence: an answer of the other path counts only if it is newer than the silence") {
  TwoPaths two;
  two.paths[0].owes_answer = false;
  auto found = two.run(kAboveLimit, kNone);
  CHECK(found.silent == 0);
  CHECK(found.must_ask);  // so that the other one can show that it works
  found = two.run(3 * times::kSilenceLookEveryNs, kFirst);
  CHECK(found.silent == 2);
}

TEST_CASE("silence: paths without work are asked when all are quiet") {
  TwoPaths two;
  for (PathSigns& path : two.paths) path.owes_answer = false;
  CHECK_FALSE(two.run(times::kSilenceAskAfterNs - times::kSilenceLookEveryNs, kNone).must_ask);
  CHECK(two.run(2 * times::kSilenceLookEveryNs, kNone).must_ask);
}

TEST_CASE("silence: a path gets the time that its work should take, many times over") {
  TwoPaths two;
  two.paths[1].expected_ns = 50 * kNsPerMs;
  CHECK(two.run(kAboveLimit, kFirst).silent == 0);
  CHECK(two.run(times::kSilenceExpectedTimes * 50 * kNsPerMs, kFirst).silent == 2);
}

TEST_CASE("silence: a path that has never answered gets longer") {
  TwoPaths two;
  two.watch = SilenceWatch();
  for (const PathSigns& path : two.paths) *path.kept = {};
  two.paths[1].heard = 0;
  CHECK(two.run(kAboveLimit, kFirst).silent == 0);
  CHECK(two.run(times::kSilenceFirstLimitNs, kFirst).silent == 2);
}

TEST_CASE("silence: only a part of the time in which a thread did not look counts") {
  TwoPaths two;
  two.run(kBelowLimit - times::kSilenceMostCountedNs, kFirst);
  two.now += 10 * kNsPerSec;
  CHECK(two.run(times::kSilenceLookEveryNs, kFirst).silent == 0);
  CHECK(two.run(kAboveLimit - kBelowLimit, kFirst).silent == 2);
}

TEST_CASE("silence: a thread that can look only now and then notices it, too") {
  TwoPaths two;
  two.look_every_ns = kNsPerSec;
  CHECK(two.run(kNsPerSec, kFirst).silent == 0);
  CHECK(two.run(3 * kNsPerSec, kFirst).silent == 2);
}

TEST_CASE("silence: a false alarm doubles the limit, and a quiet minute halves it") {
  TwoPaths two;
  const auto answer_both = [](std::size_t) { return true; };
  two.watch.was_wrong_about(*two.paths[1].kept);
  CHECK(two.run(2 * kBelowLimit, kFirst).silent == 0);
  CHECK(two.run(4 * times::kSilenceLookEveryNs, kFirst).silent == 2);
  for (int i = 0; i < 100; ++i) two.watch.was_wrong_about(*two.paths[1].kept);
  two.run(times::kSilenceLookEveryNs, answer_both);
  CHECK(two.run(times::kSilenceMostLimitNs - 2 * times::kSilenceLookEveryNs, kFirst).silent == 0);
  CHECK(two.run(4 * times::kSilenceLookEveryNs, kFirst).silent == 2);
  two.run(10 * times::kSilenceForgiveAfterNs, answer_both);
  CHECK(two.run(kAboveLimit, kFirst).silent == 2);
}

}  // namespace beeline
