// SPDX-License-Identifier: Apache-2.0
//
// The numbers that an all-reduce adds. Floats are integers, so that their sum is exact in any
// order, and as large as possible, so that an error in almost any bit changes the sum. Remaining
// bytes are added modulo 256.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/perf/content.h"

namespace beeline::perf {

// The summands of `rank`.
void fill_summands(std::uint8_t* data, size_t bytes, int rank, int ranks, std::uint64_t round);

// `into` = a + b, for a piece of the data: floats, followed by up to three bytes.
void add_pieces(std::uint8_t* into, const std::uint8_t* a, const std::uint8_t* b, size_t bytes);

// The number of elements that are not the sum over all ranks. Each remaining byte counts as one.
Mismatch compare_sums(const std::uint8_t* data, size_t bytes, int ranks, std::uint64_t round);

}  // namespace beeline::perf
