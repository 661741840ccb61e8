// SPDX-License-Identifier: Apache-2.0
//
// Whoever leaves a fabric clears away what the dead left there.
#include <filesystem>

#include "tests/fault/ghost.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

TEST_CASE("leftovers: the files of the dead go when a living process leaves", "[fault][softnic]") {
  const TestFabric fabric;
  leave_a_ghost(fabric.fabric());
  const std::string arena = fabric.fabric().dir() + "/arena." + std::to_string(kGhostSlot);
  REQUIRE(std::filesystem::exists(arena));
  { const ContextPtr living = open_device("softnic0"); }
  CHECK_FALSE(std::filesystem::exists(arena));
  CHECK(fabric.fabric().header().slots[kGhostSlot].epoch.load() == 0);
}
