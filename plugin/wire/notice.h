// SPDX-License-Identifier: Apache-2.0
//
// How a path tells the receiver that its part of a message has arrived.
//
// A message that one WRITE carries whole needs no more than 32 bits, which travel as that write's
// immediate; its size is the completion's byte count. All else (devices without immediates, data
// that adaptive routing may spread, messages in chunks) sends a Notice behind the data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace beeline::wire {

// The immediate: the line's number, low bits, and the epoch of the path.
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
