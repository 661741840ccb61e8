// SPDX-License-Identifier: Apache-2.0
//
// Tests of the scripts of grouped receives: both ends generate the same one, and it keeps NCCL's
// rules.
#include "tests/support/catch.h"
#include "tools/perf/patterns/group_script.h"

#include <algorithm>
#include <set>

namespace beeline::perf {
namespace {

bool equal(const Group& a, const Group& b) {
  if (a.n != b.n || a.order != b.order) return false;
  for (size_t i = 0; i < a.n; ++i) {
    const GroupPart& x = a.parts[i];
    const GroupPart& y = b.parts[i];
    if (x.tag != y.tag || x.size != y.size || x.capacity != y.capacity) return false;
  }
  return true;
}

TEST_CASE("script: a seed determines the script", "[tools][script]") {
  const auto a = random_script(5, 100, 8, {0, 7, 4096});
  const auto b = random_script(5, 100, 8, {0, 7, 4096});
  const auto c = random_script(6, 100, 8, {0, 7, 4096});
  REQUIRE(a.size() == 100);
  CHECK(std::equal(a.begin(), a.end(), b.begin(), equal));
  CHECK_FALSE(std::equal(a.begin(), a.end(), c.begin(), equal));
}

TEST_CASE("script: every part is sent once, equal tags in the order of their parts",
          "[tools][script]") {
  bool repeated = false;
  bool reordered = false;
  for (const Group& group : random_script(5, 1000, 8, {64})) {
    std::set<size_t> filled;
    for (size_t j = 0; j < group.n; ++j) {
      const size_t part = group.order[j];
      REQUIRE(part < group.n);
      for (size_t earlier = 0; earlier < part; ++earlier) {
        if (group.parts[earlier].tag != group.parts[part].tag) continue;
        REQUIRE(filled.count(earlier) == 1);
        repeated = true;
      }
      REQUIRE(filled.insert(part).second);
      reordered = reordered || part != j;
    }
  }
  CHECK(repeated);
  CHECK(reordered);
}

TEST_CASE("script: sends fit their receives, and sizes stay within bounds", "[tools][script]") {
  bool below = false;
  for (const Group& group : random_script(5, 1000, 4, {0, 100, 5000})) {
    REQUIRE(group.n >= 1);
    REQUIRE(group.n <= 4);
    for (size_t i = 0; i < group.n; ++i) {
      REQUIRE(group.parts[i].size <= group.parts[i].capacity);
      REQUIRE(group.parts[i].capacity <= 5000);
      below = below || group.parts[i].size < group.parts[i].capacity;
    }
  }
  CHECK(below);
}

TEST_CASE("script: a fixed script has groups of every size", "[tools][script]") {
  std::set<size_t> seen;
  for (const Group& group : fixed_script(1, 64, 8, 100)) {
    seen.insert(group.n);
    for (size_t i = 0; i < group.n; ++i) CHECK(group.parts[i].size == 100 - i);
  }
  CHECK(seen == std::set<size_t>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(fixed_script(1, 8, 8, 3).back().parts[7].size == 0);
}

}  // namespace
}  // namespace beeline::perf
