// SPDX-License-Identifier: Apache-2.0
//
// Each store to shared memory that two working processes come to, on either side: a process that is
// killed right there leaves nobody stuck and nothing behind. A new store is tested as soon as the
// scenario comes to it.
#include "tests/fault/kill_run.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

// A list shorter than this has been made by a broken scenario.
constexpr size_t kPlausibleSites = 30;

}  // namespace

TEST_CASE("kill_points: side 0 may die at any store", "[fault][softnic]") {
  kill_everywhere("side 0", kPlausibleSites,
                  [](const KillOrder& order) { return run_with_victim(0, order); });
}

TEST_CASE("kill_points: side 1 may die at any store", "[fault][softnic]") {
  kill_everywhere("side 1", kPlausibleSites,
                  [](const KillOrder& order) { return run_with_victim(1, order); });
}
