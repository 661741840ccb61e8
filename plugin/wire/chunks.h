// SPDX-License-Identifier: Apache-2.0
//
// How a message that several paths carry is cut into chunks. Both ends compute it from the size of
// the message, so a change here needs a new version of the protocol.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "plugin/wire/limits.h"

namespace beeline::wire {

// One bit for each chunk.
using ChunkMask = std::uint64_t;
inline constexpr std::uint32_t kMaxChunks = 64;
inline constexpr std::uint32_t kLeastChunkBytes = 16 * 1024;

// All chunks but the last have this size.
constexpr std::uint32_t chunk_bytes_of(std::uint32_t message_bytes) noexcept {
  constexpr std::uint32_t kCut = kCutBytes;
  const std::uint32_t even = (message_bytes + kMaxChunks - 1) / kMaxChunks;
  return std::max(kLeastChunkBytes, (even + kCut - 1) / kCut * kCut);
}

// An empty message is one chunk, too.
constexpr std::uint32_t chunk_count_of(std::uint32_t message_bytes) noexcept {
  const std::uint32_t chunk = chunk_bytes_of(message_bytes);
  return std::max((message_bytes + chunk - 1) / chunk, std::uint32_t{1});
}

// The first `count` chunks, 1 to kMaxChunks.
constexpr ChunkMask first_chunks(std::uint32_t count) noexcept {
  return ~ChunkMask{0} >> (kMaxChunks - count);
}
constexpr ChunkMask all_chunks_of(std::uint32_t message_bytes) noexcept {
  return first_chunks(chunk_count_of(message_bytes));
}

// How many bytes of the message these chunks have.
constexpr std::uint32_t bytes_of(ChunkMask chunks, std::uint32_t message_bytes) noexcept {
  const std::uint32_t chunk = chunk_bytes_of(message_bytes);
  const std::uint32_t last = chunk_count_of(message_bytes) - 1;
  const auto count = static_cast<std::uint32_t>(std::popcount(chunks));
  const bool has_last = (chunks >> last & 1) != 0;
  return has_last ? (count - 1) * chunk + (message_bytes - last * chunk) : count * chunk;
}

}  // namespace beeline::wire
