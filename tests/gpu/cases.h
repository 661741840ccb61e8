// SPDX-License-Identifier: Apache-2.0
//
// Which all-reduces are run, what goes into them and what must come out. Every element is a whole
// number that depends on its rank, its place and the round, small enough that the sum is exact in
// every type and in any order: what is not equal is wrong, and data of another place or of an
// earlier round is not mistaken for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace beeline::gpu {

enum class DataType { kFloat32, kInt32, kUint8 };
const char* to_string(DataType type) noexcept;
int nccl_type(DataType type) noexcept;

struct Case {
  DataType type;
  std::size_t count;

  std::size_t bytes() const noexcept;
};
std::string describe(const Case& one);

// From one element to 64 MiB, most of them of odd length. LL and LL128 stop earlier: NCCL itself
// does not use them for more, and where ranks share a GPU by turns each step costs a turn.
std::vector<Case> cases_for(const std::string& proto, std::size_t most_bytes);

// What surrounds the data, so that a write past its end is seen.
inline constexpr std::size_t kGuardBytes = 256;
inline constexpr unsigned char kGuardByte = 0xEE;

// `to` and `got` have room for the case and a guard.
void fill(const Case& one, int rank, int round, unsigned char* to);

struct Verdict {
  std::uint64_t wrong = 0;
  std::string first;  // the first wrong element, in words
};
Verdict check(const Case& one, int ranks, int round, const unsigned char* got);

}  // namespace beeline::gpu
