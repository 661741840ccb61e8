// SPDX-License-Identifier: Apache-2.0
//
// Messages about failed paths that travel in-band: over a path that works, because the control
// channel may be away. Each end of a comm with several paths has a cell, into which the other end
// writes by RDMA. A cell holds a piece of the frames (message_frame.h) that its writer has to say,
// and the number of the last piece that its writer has taken from the other end. The next piece
// follows when that number says that the last one was taken. Until then the writer repeats the
// whole cell, by another path if one fails, so it may be written more than once, and late.
//
// The CPU may see the bytes of an RDMA WRITE in any order. A cell counts only if its sum is right.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace beeline::wire {

inline constexpr std::size_t kInBandBytes = 488;  // of one piece: most messages are shorter

struct alignas(64) InBandCell {
  std::uint64_t sum;     // over the rest
  std::uint32_t write;   // how often the cell was written; 0: never
  std::uint32_t number;  // of the piece, from 1 on; 0: there is none yet
  std::uint32_t taken;   // the last piece of the other end that was taken
  std::uint32_t size;    // bytes of the piece
  std::array<std::byte, kInBandBytes> data;
};
static_assert(sizeof(InBandCell) == 512 && std::endian::native == std::endian::little);

using InBandWords = std::array<std::uint64_t, sizeof(InBandCell) / sizeof(std::uint64_t)>;

// As sum_of() a credit line (credit.h). It never is 0 for a cell of zeroes.
constexpr std::uint64_t sum_of(const InBandWords& words) noexcept {
  constexpr std::uint64_t kFactor = 0x5851'f42d'4c95'7f2d;
  std::uint64_t sum = 1;
  for (std::size_t i = 1; i < words.size(); ++i) sum = sum * kFactor + words[i];
  return sum;
}

inline void seal(InBandCell& cell) noexcept { cell.sum = sum_of(std::bit_cast<InBandWords>(cell)); }

// Its `write`.
constexpr std::size_t kWriteWord = offsetof(InBandCell, write) / sizeof(std::uint64_t);
constexpr std::uint32_t write_of(std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(word);
}

// The cell, if these words are a whole one.
inline std::optional<InBandCell> open_cell(const InBandWords& words) noexcept {
  if (words[0] != sum_of(words)) return std::nullopt;
  const auto cell = std::bit_cast<InBandCell>(words);
  if (cell.size > kInBandBytes) return std::nullopt;
  return cell;
}

// The part of an end's control memory that is for messages. It lies behind the credit ring, or, at
// a receiver, behind the copy of the ring.
struct InBandArea {
  alignas(64) InBandWords theirs;  // an InBandCell, to which the other end writes
  InBandCell ours;                 // is written to the other end
  alignas(64) std::uint32_t seen;  // the `write` of `theirs` that was looked at last
};

}  // namespace beeline::wire
