// SPDX-License-Identifier: Apache-2.0
//
// What goes into an operation and what must come out. Every element is a whole number that depends
// on its rank, its place, the operation and the round, small enough that sums are exact in every
// type and in any order: what is not equal is wrong, and data of another place, of another rank or
// of an earlier round is not mistaken for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/gpu/cases.h"

namespace beeline::gpu {

// Who does it, among how many, for which time.
struct Place {
  int rank;
  int ranks;
  int round;
};

// What stands before and behind the data, so that a write beside it is seen.
inline constexpr std::size_t kGuardBytes = 256;
inline constexpr unsigned char kGuardByte = 0xEE;

// Where a rank's input and output lie in a buffer: a guard, the data, a guard.
struct Layout {
  std::size_t input;   // offset
  std::size_t output;  // offset; in place, one of the two is a part of the other
  std::size_t end;     // offset of the second guard

  std::size_t bytes() const noexcept { return end + kGuardBytes; }
};
Layout apart_input(const Case& one, const Place& place);
Layout apart_output(const Case& one, const Place& place);
Layout in_place(const Case& one, const Place& place);

// The rank's input.
void fill(const Case& one, const Place& place, unsigned char* to);

struct Verdict {
  std::uint64_t wrong = 0;
  std::string first;  // the first wrong element, in words
};
// `buffer` is all of it, with its guards.
Verdict check(const Case& one, const Place& place, const Layout& layout,
              const unsigned char* buffer);

}  // namespace beeline::gpu
