// SPDX-License-Identifier: Apache-2.0
//
// The credit line: one buffer that the receiver has ready, written by RDMA into the sender's credit
// ring. Line number p lies at index p % kMaxLines, and the lines of one irecv follow each other, so
// that grants which are ready together go out in one write.
//
// Nothing orders the bytes of an RDMA write as seen by the CPU that reads them: a line may be seen
// half old and half new. Each line therefore carries its number and a sum over all of it, and
// exists only when both are right.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "plugin/wire/limits.h"

namespace beeline::wire {

struct alignas(64) CreditLine {
  std::uint64_t address;                       // of the buffer, at the receiver
  std::uint32_t capacity;                      // bytes
  std::int32_t tag;                            // matched against isend's
  std::array<std::uint32_t, kMaxRails> rkeys;  // of the buffer, by rail
  std::uint32_t number;                        // p + 1: a ring of zeroes holds no line
  std::uint8_t index;                          // within its irecv
  std::uint8_t count;                          // buffers of its irecv
  std::uint8_t notices;                        // receives posted for it on each path
  std::uint8_t epoch;                          // of the paths; 0 until one is re-made
  std::uint32_t reserved;
  std::uint32_t sum;
};
static_assert(sizeof(CreditLine) == 64 && offsetof(CreditLine, number) == 48 &&
              offsetof(CreditLine, sum) == 60);

// Positions count up and wrap around; those in flight lie close together.
constexpr bool is_before(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b) < 0;
}

inline constexpr std::size_t kCreditRingBytes = kMaxLines * sizeof(CreditLine);

// Of all but the sum itself. Multiplying after each word lets no change of one word undo that of
// another, however much alike they are: keys come from counters that run side by side.
inline std::uint32_t sum_of(const CreditLine& line) noexcept {
  std::array<std::uint64_t, 8> words;
  static_assert(sizeof words == sizeof line);
  std::memcpy(words.data(), &line, sizeof line);
  words[7] &= 0xffff'ffffU;  // its upper half is the sum
  std::uint64_t sum = 0;
  for (const std::uint64_t word : words) sum = std::rotl(sum ^ word, 29) * 0x9e37'79b9'7f4a'7c15U;
  return static_cast<std::uint32_t>(sum >> 32);
}

inline void seal(CreditLine& line) noexcept { line.sum = sum_of(line); }

// Takes what lies in the ring at the moment. False: line `number` is not there, or not all of it.
inline bool take_line(const CreditLine& in_ring, std::uint32_t position, CreditLine& out) noexcept {
  // The NIC writes it while we read: what the compiler must not do is read it twice.
  std::array<std::uint64_t, 8> words;
  const auto* source = reinterpret_cast<const volatile std::uint64_t*>(&in_ring);
  words[6] = source[6];
  if (static_cast<std::uint32_t>(words[6]) != position + 1) return false;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = source[i];
  std::memcpy(&out, words.data(), sizeof out);
  return out.number == position + 1 && out.sum == sum_of(out);
}

}  // namespace beeline::wire
