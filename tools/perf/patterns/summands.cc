// SPDX-License-Identifier: Apache-2.0
//
// See summands.h.
#include "tools/perf/patterns/summands.h"

#include <bit>
#include <cstring>

namespace beeline::perf {
namespace {

constexpr size_t kFloat = sizeof(float);

// Whole numbers up to here are exact in a float.
constexpr std::uint64_t kExact = std::uint64_t{1} << 24;

unsigned summand(int rank, int ranks, std::uint64_t round, size_t index) noexcept {
  // In the upper half of what a rank may add: a small number would have idle bits.
  const auto half = kExact / 2 / static_cast<std::uint64_t>(ranks);
  const std::uint64_t chance =
      mix((round << 48) ^ (static_cast<std::uint64_t>(rank) << 36) ^ index);
  return static_cast<unsigned>(half + chance % half);
}

unsigned sum_of(int ranks, std::uint64_t round, size_t index) noexcept {
  unsigned sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += summand(rank, ranks, round, index);
  return sum;
}

}  // namespace

void fill_summands(std::uint8_t* data, size_t bytes, int rank, int ranks, std::uint64_t round) {
  const size_t floats = bytes / kFloat;
  for (size_t i = 0; i < floats; ++i) {
    const auto value = static_cast<float>(summand(rank, ranks, round, i));
    std::memcpy(data + i * kFloat, &value, kFloat);
  }
  for (size_t at = floats * kFloat; at < bytes; ++at) {
    data[at] = static_cast<std::uint8_t>(summand(rank, ranks, round, at));
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
  Mismatch mismatch;
  const auto note = [&](size_t at, unsigned found, unsigned wanted) {
    if (mismatch.count++ != 0) return;
    mismatch.first = at;
    mismatch.found = static_cast<std::uint8_t>(found);
    mismatch.wanted = static_cast<std::uint8_t>(wanted);
  };
  const size_t floats = bytes / kFloat;
  for (size_t i = 0; i < floats; ++i) {
    const unsigned sum = sum_of(ranks, round, i);
    const auto wanted = std::bit_cast<std::uint32_t>(static_cast<float>(sum));
    // Compared bit by bit: a value that is not a number must not slip through.
    std::uint32_t found = 0;
    std::memcpy(&found, data + i * kFloat, kFloat);
    if (found != wanted) note(i * kFloat, data[i * kFloat], sum);
  }
  for (size_t at = floats * kFloat; at < bytes; ++at) {
    const unsigned sum = sum_of(ranks, round, at);
    if (data[at] != static_cast<std::uint8_t>(sum)) note(at, data[at], sum);
  }
  return mismatch;
}

}  // namespace beeline::perf
