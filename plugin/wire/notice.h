// SPDX-License-Identifier: Apache-2.0
//
// The message by which a path tells the receiver that its part of a message has arrived.
//
// For a message that is one RDMA WRITE, 32 bits are enough: they are the immediate of that WRITE,
// and the size is the completion's byte count. Otherwise (the device has no immediates, adaptive
// routing may reorder the data, or the message is cut into chunks) a SEND behind the data carries a
// Notice.
#pragma once

#include <cstdint>

#include "plugin/wire/chunks.h"

namespace beeline::wire {

// The 32 bits of the immediate.
struct Immediate {
  std::uint16_t line;  // low 16 bits of the line's position
  std::uint8_t generation;
};

constexpr std::uint32_t pack(Immediate value) noexcept {
  return std::uint32_t{value.line} | std::uint32_t{value.generation} << 16;
}
constexpr Immediate unpack(std::uint32_t bits) noexcept {
  return {.line = static_cast<std::uint16_t>(bits),
          .generation = static_cast<std::uint8_t>(bits >> 16)};
}

// A path sends at most one for each message.
struct Notice {
  std::uint16_t line;       // as in an immediate
  std::uint8_t generation;  // of the path
  std::uint8_t chunks;      // of the whole message
  std::uint32_t size;       // of the whole message
  ChunkMask which;          // the chunks that this path has carried
};
static_assert(sizeof(Notice) == 16);

// Whether the notice names chunks that a message of its size has. The size is one of a message.
constexpr bool is_consistent(const Notice& notice) noexcept {
  return notice.chunks == chunk_count_of(notice.size) && notice.which != 0 &&
         (notice.which & ~all_chunks_of(notice.size)) == 0;
}

}  // namespace beeline::wire
