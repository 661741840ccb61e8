// SPDX-License-Identifier: Apache-2.0
//
// The numbers that an all-reduce adds up. Floats are whole numbers, so that their sum is exact in
// whatever order it is made, and as large as that allows, so that few bits of them do not matter.
// Bytes left over wrap around.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/perf/content.h"

namespace beeline::perf {

// What `rank` of `ranks` puts in.
void fill_summands(std::uint8_t* data, size_t bytes, int rank, int ranks, std::uint64_t round);

// `into` = a + b, of a piece of the data: floats, and at its end up to three bytes.
void add_pieces(std::uint8_t* into, const std::uint8_t* a, const std::uint8_t* b, size_t bytes);

// How many elements are not the sum over `ranks`; a byte left over counts as one.
Mismatch compare_sums(const std::uint8_t* data, size_t bytes, int ranks, std::uint64_t round);

}  // namespace beeline::perf
