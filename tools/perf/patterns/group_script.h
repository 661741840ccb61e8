// SPDX-License-Identifier: Apache-2.0
//
// What goes over a comm in groups: how many parts, their tags and sizes, and the order of the
// sends. Both ends make the same script from the same seed, each for itself.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/perf/content.h"
#include "tools/perf/recv_end.h"

namespace beeline::perf {

// Repeatable; good enough for tests.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix(seed)) {}
  std::uint64_t next() noexcept { return mix(state_++); }
  // 0 to n-1
  std::uint64_t below(std::uint64_t n) noexcept { return n == 0 ? 0 : next() % n; }
  bool one_in(std::uint64_t n) noexcept { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

struct GroupPart {
  int tag = 0;
  size_t capacity = 0;  // of the receive
  size_t size = 0;      // of the send
};

struct Group {
  size_t n = 0;
  std::array<GroupPart, kMaxParts> parts{};
  // The j-th send fills part order[j]. Sends with equal tags fill their parts in order.
  std::array<size_t, kMaxParts> order{};
};

// Chooses tags, some of them equal, and an order of the sends that respects them. The sizes are the
// caller's.
Group make_group(Random& random, size_t parts);

// `size` for every part but a byte less for each part before it, so that none is taken for another.
std::vector<Group> fixed_script(std::uint64_t seed, size_t groups, size_t most_parts, size_t size);

// Sizes from `sizes` or below them; receives that are as large as their send, or larger.
std::vector<Group> random_script(std::uint64_t seed, size_t groups, size_t most_parts,
                                 const std::vector<size_t>& sizes);

}  // namespace beeline::perf
