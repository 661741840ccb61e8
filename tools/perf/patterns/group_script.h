// SPDX-License-Identifier: Apache-2.0
//
// The grouped receives of a comm: the number of parts, their tags and sizes, and the order of the
// sends. Both ends generate the same script from the same seed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/perf/content.h"
#include "tools/perf/recv_end.h"

namespace beeline::perf {

// A reproducible random number generator, which is good enough for tests.
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

// Chooses tags, some of them equal, and an order of the sends that is valid for them. The caller
// sets the sizes.
Group make_group(Random& random, size_t parts);

// Each part is one byte smaller than the part before it, beginning with `size`, so that no part is
// mistaken for another.
std::vector<Group> fixed_script(std::uint64_t seed, size_t groups, size_t most_parts, size_t size);

// Random sizes of sends up to those in `sizes`. Each receive is as large as its send, or larger.
std::vector<Group> random_script(std::uint64_t seed, size_t groups, size_t most_parts,
                                 const std::vector<size_t>& sizes);

}  // namespace beeline::perf
