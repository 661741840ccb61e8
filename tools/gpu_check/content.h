// SPDX-License-Identifier: Apache-2.0
//
// The input and expected output of an operation. Every element is an integer that depends on its
// rank, its index, the operation and the round, so that data of another index, rank or round is
// noticed. It is small enough that sums are exact in every type and order, so outputs can be
// compared for equality.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/gpu_check/cases.h"

namespace beeline::gpu {

// One rank, in one round of an operation.
struct Place {
  int rank;
  int ranks;
  int round;
};

// The guards before and after the data, which detect writes outside of it.
inline constexpr std::size_t kGuardBytes = 256;
inline constexpr unsigned char kGuardByte = 0xEE;

// The layout of a rank's buffer: a guard, the data, a guard.
struct Layout {
  std::size_t input;   // offset
  std::size_t output;  // offset; in place, one of the two is a part of the other
  std::size_t end;     // offset of the second guard

  std::size_t bytes() const noexcept { return end + kGuardBytes; }
};
Layout apart_input(const Case& one, const Place& place);
Layout apart_output(const Case& one, const Place& place);
Layout in_place(const Case& one, const Place& place);

// Writes the rank's input.
void fill(const Case& one, const Place& place, unsigned char* to);

struct Verdict {
  std::uint64_t wrong = 0;
  std::string first;  // a description of the first wrong element
};
// Compares the output. `buffer` is the whole buffer, with its guards.
Verdict check(const Case& one, const Place& place, const Layout& layout,
              const unsigned char* buffer);

}  // namespace beeline::gpu
