// SPDX-License-Identifier: Apache-2.0
//
// A process is killed at each store to shared memory that the scenario visits, on either side. No
// other process may hang, and no file may be left. A new store is tested as soon as the scenario
// visits it.
#include "tests/beds/fault/kill_run.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

// A shorter list means that the scenario is broken.
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
