// SPDX-License-Identifier: Apache-2.0
//
// A process that leaves a fabric removes the files of dead processes.
#include <filesystem>

#include "tests/beds/fault/stale_slot.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

TEST_CASE("leftovers: the files of dead processes are removed when a living one leaves",
          "[fault][softnic]") {
  const TestFabric fabric;
  leave_stale_slot(fabric.fabric());
  const std::string arena = fabric.fabric().dir() + "/arena." + std::to_string(kStaleSlot);
  REQUIRE(std::filesystem::exists(arena));
  { const ContextPtr living = open_device("softnic0"); }
  CHECK_FALSE(std::filesystem::exists(arena));
  CHECK(fabric.fabric().header().slots[kStaleSlot].epoch.load() == 0);
}
