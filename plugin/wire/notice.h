// SPDX-License-Identifier: Apache-2.0
//
// The message by which a path tells the receiver that its part of a message has arrived.
//
// For a message that is one RDMA WRITE, 32 bits are enough: they are the immediate of that WRITE,
// and the size is the completion's byte count. Otherwise (the device has no immediates, adaptive
// routing may reorder the data, or the message is cut into chunks) a SEND behind the data carries a
// Notice.
#pragma once

#include <cstddef>
#include <cstdint>

namespace beeline::wire {

// The 32 bits of the immediate.
struct Immediate {
  std::uint16_t line;  // low 16 bits of the line's position
  std::uint8_t epoch;
};

constexpr std::uint32_t pack(Immediate value) noexcept {
  return std::uint32_t{value.line} | std::uint32_t{value.epoch} << 16;
}
constexpr Immediate unpack(std::uint32_t bits) noexcept {
  return {.line = static_cast<std::uint16_t>(bits), .epoch = static_cast<std::uint8_t>(bits >> 16)};
}

struct Notice {
  std::uint32_t line;        // position
  std::uint32_t size;        // of the whole message
  std::uint16_t first;       // chunk
  std::uint16_t chunks;      // how many this notice covers, from `first`
  std::uint16_t all_chunks;  // of the message
  std::uint8_t epoch;
  std::uint8_t reserved;
};
static_assert(sizeof(Notice) == 16);

}  // namespace beeline::wire
