// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/patterns/summands.h"

#include <bit>
#include <cstring>

namespace beeline::perf {
namespace {

constexpr size_t kFloat = sizeof(float);

// Integers up to this one are exact in a float.
constexpr std::uint64_t kExact = std::uint64_t{1} << 24;

// The numbers that the ranks add up in one round. They are computed for each element of every
// all-reduce, so this must be fast.
class Summands {
 public:
  Summands(int ranks, std::uint64_t round)
      : ranks_(ranks), half_(kExact / 2 / static_cast<std::uint64_t>(ranks)), salt_(mix(round)) {}

  unsigned of_rank(int rank, size_t index) const noexcept {
    return scaled(mix(salt_ ^ index), static_cast<std::uint64_t>(rank));
  }
  unsigned sum(size_t index) const noexcept {
    const std::uint64_t chance = mix(salt_ ^ index);
    unsigned sum = 0;
    for (int rank = 0; rank < ranks_; ++rank)
      sum += scaled(chance, static_cast<std::uint64_t>(rank));
    return sum;
  }

 private:
  // In the upper half of the range, because a small number would have unused bits.
  unsigned scaled(std::uint64_t chance, std::uint64_t rank) const noexcept {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
    const std::uint64_t own = (chance * (kOdd * (2 * rank + 1))) >> 32;
    return static_cast<unsigned>(half_ + (own * half_ >> 32));
  }

  int ranks_;
  std::uint64_t half_;
  std::uint64_t salt_;
};

}  // namespace

void fill_summands(std::uint8_t* data, size_t bytes, int rank, int ranks, std::uint64_t round) {
  const size_t floats = bytes / kFloat;
  const Summands summands(ranks, round);
  for (size_t i = 0; i < floats; ++i) {
    const auto value = static_cast<float>(summands.of_rank(rank, i));
    std::memcpy(data + i * kFloat, &value, kFloat);
  }
  for (size_t at = floats * kFloat; at < bytes; ++at) {
    data[at] = static_cast<std::uint8_t>(summands.of_rank(rank, at));
  }
}

void add_pieces(std::uint8_t* into, const std::uint8_t* a, const std::uint8_t* b, size_t bytes) {
  const size_t floats = bytes / kFloat;
  for (size_t i = 0; i < floats; ++i) {
    float x = 0;
    float y = 0;
    std::memcpy(&x, a + i * kFloat, kFloat);
    std::memcpy(&y, b + i * kFloat, kFloat);
    x += y;
    std::memcpy(into + i * kFloat, &x, kFloat);
  }
  for (size_t at = floats * kFloat; at < bytes; ++at) {
    into[at] = static_cast<std::uint8_t>(a[at] + b[at]);
  }
}

Mismatch compare_sums(const std::uint8_t* data, size_t bytes, int ranks, std::uint64_t round) {
  const Summands summands(ranks, round);
  Mismatch mismatch;
  const auto note = [&](size_t at, unsigned found, unsigned wanted) {
    if (mismatch.count++ != 0) return;
    mismatch.first = at;
    mismatch.found = static_cast<std::uint8_t>(found);
    mismatch.wanted = static_cast<std::uint8_t>(wanted);
  };
  const size_t floats = bytes / kFloat;
  for (size_t i = 0; i < floats; ++i) {
    const unsigned sum = summands.sum(i);
    const auto wanted = std::bit_cast<std::uint32_t>(static_cast<float>(sum));
    // Compared bit by bit, so that NaN counts as wrong.
    std::uint32_t found = 0;
    std::memcpy(&found, data + i * kFloat, kFloat);
    if (found != wanted) note(i * kFloat, data[i * kFloat], sum);
  }
  for (size_t at = floats * kFloat; at < bytes; ++at) {
    const unsigned sum = summands.sum(at);
    if (data[at] != static_cast<std::uint8_t>(sum)) note(at, data[at], sum);
  }
  return mismatch;
}

}  // namespace beeline::perf
