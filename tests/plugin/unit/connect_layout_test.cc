// SPDX-License-Identifier: Apache-2.0
//
// Which rails the paths of a comm join.
#include <set>

#include "plugin/connect/path/path_layout.h"
#include "tests/support/catch.h"

using namespace beeline;

namespace {

wire::RailCounts counts(int rails, int qps_per_rail) {
  return {.rails = static_cast<std::uint8_t>(rails),
          .qps_per_rail = static_cast<std::uint8_t>(qps_per_rail)};
}

}  // namespace

TEST_CASE("connect layout: one rail at each end makes one path", "[unit][connect]") {
  const PathLayout layout = path_layout(counts(1, 1), counts(1, 1));
  CHECK(layout.count == 1);
  CHECK(layout.place(0) == PathPlace{.number = 0, .rail = 0, .peer_rail = 0});
}

TEST_CASE("connect layout: rails of unequal number are joined in turn", "[unit][connect]") {
  const PathLayout layout = path_layout(counts(2, 1), counts(3, 1));
  REQUIRE(layout.count == 3);
  CHECK(layout.place(0) == PathPlace{.number = 0, .rail = 0, .peer_rail = 0});
  CHECK(layout.place(1) == PathPlace{.number = 1, .rail = 1, .peer_rail = 1});
  CHECK(layout.place(2) == PathPlace{.number = 2, .rail = 0, .peer_rail = 2});
}

TEST_CASE("connect layout: the end that wants more queue pairs gets them", "[unit][connect]") {
  CHECK(path_layout(counts(1, 4), counts(1, 1)).count == 4);
  CHECK(path_layout(counts(2, 1), counts(2, 3)).count == 6);
}

TEST_CASE("connect layout: more than eight paths are cut, and the layout says so",
          "[unit][connect]") {
  const PathLayout layout = path_layout(counts(3, 3), counts(2, 1));
  CHECK(layout.count == wire::kMaxPaths);
  CHECK(layout.wanted == 9);
  CHECK(path_layout(counts(8, 8), counts(8, 8)).wanted == 64);
}

TEST_CASE("connect layout: both ends agree on every path, and every rail has one",
          "[unit][connect]") {
  const int rails = GENERATE(1, 2, 3, 4, 5, 6, 7, 8);
  const int peer_rails = GENERATE(1, 2, 3, 4, 5, 6, 7, 8);
  const int qps = GENERATE(1, 2, 8);
  const PathLayout ours = path_layout(counts(rails, qps), counts(peer_rails, 1));
  const PathLayout theirs = path_layout(counts(peer_rails, 1), counts(rails, qps));
  REQUIRE(ours.count == theirs.count);
  CHECK(ours.count <= wire::kMaxPaths);
  std::set<int> used;
  std::set<int> used_by_peer;
  for (std::uint8_t number = 0; number < ours.count; ++number) {
    const PathPlace place = ours.place(number);
    const PathPlace seen_by_peer = theirs.place(number);
    CHECK(place.rail == seen_by_peer.peer_rail);
    CHECK(place.peer_rail == seen_by_peer.rail);
    used.insert(place.rail);
    used_by_peer.insert(place.peer_rail);
  }
  CHECK(used.size() == static_cast<std::size_t>(rails));
  CHECK(used_by_peer.size() == static_cast<std::size_t>(peer_rails));
}
