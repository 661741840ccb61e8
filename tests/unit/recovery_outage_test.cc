// SPDX-License-Identifier: Apache-2.0
#include "plugin/recovery/outage.h"

#include "tests/support/catch.h"

namespace beeline {
namespace {

using News = Outage::News;

constexpr std::int64_t kBegin = 1000 * kNsPerSec;
constexpr std::int64_t kMinute = 60 * kNsPerSec;

TEST_CASE("outage: a comm that waits says so once a minute, and not when a path works again") {
  Outage outage(0);
  CHECK(outage.due_ns() == Outage::kNever);
  CHECK(outage.look(true, kBegin) == News::kNone);
  CHECK(outage.due_ns() == kBegin + kMinute);
  CHECK(outage.look(true, kBegin + kMinute - 1) == News::kNone);
  CHECK(outage.look(true, kBegin + kMinute) == News::kStillWaiting);
  CHECK(outage.look(true, kBegin + kMinute + 1) == News::kNone);
  CHECK(outage.look(true, kBegin + 2 * kMinute) == News::kStillWaiting);
  CHECK(outage.length_ns(kBegin + 2 * kMinute) == 2 * kMinute);
  CHECK(outage.look(false, kBegin + 3 * kMinute) == News::kNone);
  CHECK(outage.look(true, kBegin + 3 * kMinute) == News::kNone);  // another one begins
  CHECK(outage.look(true, kBegin + 4 * kMinute) == News::kStillWaiting);
}

TEST_CASE("outage: a comm waits for as long as BEELINE_GIVE_UP_AFTER says, and for ever without") {
  Outage limited(5 * kNsPerSec);
  CHECK(limited.look(true, kBegin) == News::kNone);
  CHECK(limited.due_ns() == kBegin + 5 * kNsPerSec);
  CHECK(limited.look(true, kBegin + 5 * kNsPerSec - 1) == News::kNone);
  CHECK(limited.look(true, kBegin + 5 * kNsPerSec) == News::kTooLong);
  CHECK(limited.look(true, kBegin + 6 * kNsPerSec) == News::kNone);  // it is said once
  Outage unlimited(0);
  CHECK(unlimited.look(true, kBegin) == News::kNone);
  CHECK(unlimited.look(true, kBegin + 10000 * kMinute) == News::kStillWaiting);
}

}  // namespace
}  // namespace beeline
