// SPDX-License-Identifier: Apache-2.0
//
// Which rails the paths of a comm join. Both ends compute the same layout, because each knows how
// many rails and queue pairs the other has.
//
// Path i joins rail (i mod rails) of one end with rail (i mod rails) of the other. So every rail of
// both ends has a path, and equal rails are joined in order: rail 0 with rail 0, and so on.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugin/wire/handle.h"
#include "plugin/wire/limits.h"

namespace beeline {

// One path, as one end sees it.
struct PathPlace {
  std::uint8_t number = 0;
  std::uint8_t rail = 0;       // of this end
  std::uint8_t peer_rail = 0;  // of the other end

  bool operator==(const PathPlace&) const = default;
};

struct PathLayout {
  std::uint8_t count = 1;   // the paths are numbered from 0 to count - 1
  std::uint8_t wanted = 1;  // so many paths would be made if a comm could have any number
  std::uint8_t rails = 1;   // of this end
  std::uint8_t peer_rails = 1;

  PathPlace place(std::uint8_t number) const noexcept {
    return {.number = number,
            .rail = static_cast<std::uint8_t>(number % rails),
            .peer_rail = static_cast<std::uint8_t>(number % peer_rails)};
  }
};

// The end with more rails, or with more queue pairs on each, determines how many paths there are.
constexpr PathLayout path_layout(wire::RailCounts ours, wire::RailCounts theirs) noexcept {
  const int wanted = std::max(ours.rails, theirs.rails) *  //
                     std::max(ours.qps_per_rail, theirs.qps_per_rail);
  const int count = std::min(wanted, static_cast<int>(wire::kMaxPaths));
  return {.count = static_cast<std::uint8_t>(count),
          .wanted = static_cast<std::uint8_t>(wanted),
          .rails = ours.rails,
          .peer_rails = theirs.rails};
}

}  // namespace beeline
