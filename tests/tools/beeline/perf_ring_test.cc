// SPDX-License-Identifier: Apache-2.0
//
// Tests of the arithmetic of the all-reduce: how data is divided, and the sum.
#include "tests/support/catch.h"
#include "tools/perf/patterns/ring_layout.h"
#include "tools/perf/patterns/summands.h"

namespace beeline::perf {
namespace {

TEST_CASE("ring: slices cover every byte once and do not split floats", "[tools][ring]") {
  const size_t bytes = GENERATE(as<size_t>{}, 0, 1, 3, 4, 7, 8, 63, 64, 1000, 4099, 65536);
  const size_t channels = GENERATE(as<size_t>{}, 1, 3);
  const size_t ranks = GENERATE(as<size_t>{}, 2, 3, 7);
  const size_t slice = GENERATE(as<size_t>{}, 4, 64, 4096);
  CAPTURE(bytes, channels, ranks, slice);
  const RingLayout layout(bytes, channels, ranks, slice);
  CHECK(layout.slices() >= 1);
  size_t next = 0;
  for (size_t c = 0; c < channels; ++c) {
    for (size_t k = 0; k < ranks; ++k) {
      for (size_t s = 0; s < layout.slices(); ++s) {
        const Piece piece = layout.slice(c, k, s);
        if (piece.size == 0) continue;
        REQUIRE(piece.at == next);
        REQUIRE(piece.at % 4 == 0);
        REQUIRE(piece.size <= layout.slice_bytes());
        next = piece.at + piece.size;
      }
    }
  }
  CHECK(next == bytes);
}

// The sum of the data of all ranks, computed in pieces.
std::vector<std::uint8_t> summed(size_t bytes, int ranks, std::uint64_t round) {
  std::vector<std::uint8_t> sum(bytes);
  std::vector<std::uint8_t> one(bytes);
  fill_summands(sum.data(), bytes, 0, ranks, round);
  for (int rank = 1; rank < ranks; ++rank) {
    fill_summands(one.data(), bytes, rank, ranks, round);
    add_pieces(sum.data(), sum.data(), one.data(), bytes);
  }
  return sum;
}

TEST_CASE("ring: a sum over the ranks is exact, including remaining bytes", "[tools][ring]") {
  const size_t bytes = GENERATE(as<size_t>{}, 0, 1, 4, 7, 1022);
  const int ranks = GENERATE(2, 5);
  CHECK(compare_sums(summed(bytes, ranks, 9).data(), bytes, ranks, 9).count == 0);
}

TEST_CASE("ring: a sum is wrong if a rank is missing, counted twice, or old", "[tools][ring]") {
  constexpr size_t kBytes = 4003;
  constexpr size_t kMost = kBytes / 4 * 9 / 10;
  std::vector<std::uint8_t> sum = summed(kBytes, 3, 9);
  CHECK(compare_sums(sum.data(), kBytes, 4, 9).count > kMost);
  CHECK(compare_sums(sum.data(), kBytes, 2, 9).count > kMost);
  CHECK(compare_sums(sum.data(), kBytes, 3, 8).count > kMost);
  sum[kBytes - 1] ^= 1;
  sum[4] ^= 1;
  CHECK(compare_sums(sum.data(), kBytes, 3, 9).count == 2);
}

TEST_CASE("ring: a flipped bit of a summand changes the sum", "[tools][ring]") {
  constexpr size_t kBytes = 400;
  std::vector<std::uint8_t> own(kBytes);
  std::vector<std::uint8_t> other(kBytes);
  fill_summands(own.data(), kBytes, 0, 2, 9);
  fill_summands(other.data(), kBytes, 1, 2, 9);
  for (size_t at = 0; at < kBytes; at += 4) {
    other[at] ^= 4;  // near the low end of the mantissa
    std::vector<std::uint8_t> sum(kBytes);
    add_pieces(sum.data(), own.data(), other.data(), kBytes);
    CHECK(compare_sums(sum.data(), kBytes, 2, 9).count == 1);
    other[at] ^= 4;
  }
}

}  // namespace
}  // namespace beeline::perf
