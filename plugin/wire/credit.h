// SPDX-License-Identifier: Apache-2.0
//
// The credit line: one buffer that the receiver has ready, written by RDMA into the sender's credit
// ring. Line number p lies at index p % kMaxLines, and the lines of one irecv follow each other, so
// that grants which are ready together go out in one write.
//
// Nothing orders the bytes of an RDMA write as seen by the CPU that reads them: a line may be seen
// half old and half new. Each line therefore carries its number and a sum over all of it that is
// in use, and exists only when both are right.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/base/hot.h"
#include "plugin/wire/limits.h"

namespace beeline::wire {

struct alignas(64) CreditLine {
  std::uint64_t address;                       // of the buffer, at the receiver
  std::uint32_t capacity;                      // bytes
  std::int32_t tag;                            // matched against isend's
  std::array<std::uint32_t, kMaxRails> rkeys;  // of the buffer, by rail
  std::uint8_t index;                          // within its irecv
  std::uint8_t count;                          // buffers of its irecv
  std::uint8_t notices;                        // receives posted for it on each path
  std::uint8_t epoch;                          // of the paths; 0 until one is re-made
  std::uint32_t number;                        // p + 1: a ring of zeroes holds no line
  std::uint64_t sum;
};
static_assert(sizeof(CreditLine) == 64 && offsetof(CreditLine, index) == 48 &&
              offsetof(CreditLine, number) == 52 && offsetof(CreditLine, sum) == 56);

// Positions count up and wrap around; those in flight lie close together.
constexpr bool is_before(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b) < 0;
}

inline constexpr std::size_t kCreditRingBytes = kMaxLines * sizeof(CreditLine);

// A line as it travels, and as it is summed: words that fit into registers.
using LineWords = std::array<std::uint64_t, 8>;
static_assert(sizeof(LineWords) == sizeof(CreditLine) && std::endian::native == std::endian::little,
              "both ends are little-endian machines");

// Few comms have more rails than this, and the keys of rails that there are not are neither
// written, summed nor read.
inline constexpr std::size_t kFewRails = 2;
enum class Rails : std::uint8_t { kFew, kMany };
constexpr Rails rails_of(std::size_t count) noexcept {
  return count <= kFewRails ? Rails::kFew : Rails::kMany;
}

// Of all but the sum itself: a polynomial over the words. An odd factor lets no change of a single
// word pass, and a large one no changes of two that differ as addresses, sizes, tags and keys do:
// those come from counters that run side by side. It fits into an instruction.
constexpr std::uint64_t sum_of(const LineWords& words, Rails rails) noexcept {
  constexpr std::uint64_t kFactor = 0x5851'f42d;
  std::uint64_t sum = words[0];
  sum = sum * kFactor + words[1];
  sum = sum * kFactor + words[2];
  if (rails == Rails::kMany) [[unlikely]] {
    sum = sum * kFactor + words[3];
    sum = sum * kFactor + words[4];
    sum = sum * kFactor + words[5];
  }
  return sum * kFactor + words[6];
}

// For who has a line as a struct: tests, which hold the words that write_line() makes against it.
inline void seal(CreditLine& line, Rails rails) noexcept {
  line.sum = sum_of(std::bit_cast<LineWords>(line), rails);
}

// A line's number and its place, as one word of it. One notice is promised for each line.
inline constexpr std::uint64_t kOneNotice = std::uint64_t{1} << 16;
constexpr std::uint64_t order_of(std::uint32_t number, std::uint8_t index, std::uint8_t count,
                                 std::uint8_t epoch) noexcept {
  return std::uint64_t{index} | std::uint64_t{count} << 8 | kOneNotice |
         std::uint64_t{epoch} << 24 | std::uint64_t{number} << 32;
}
constexpr std::uint32_t number_of(std::uint64_t order) noexcept {
  return static_cast<std::uint32_t>(order >> 32);
}
constexpr std::uint8_t index_of(std::uint64_t order) noexcept {
  return static_cast<std::uint8_t>(order);
}
constexpr std::uint8_t count_of(std::uint64_t order) noexcept {
  return static_cast<std::uint8_t>(order >> 8);
}
// The next line, of the same irecv: a number that overflows falls out at the top.
inline constexpr std::uint64_t kNextLine = (std::uint64_t{1} << 32) + 1;
// The same, or where there is none the first line of another irecv with as many.
constexpr std::uint64_t order_after(std::uint64_t order) noexcept {
  const std::uint64_t next = order + kNextLine;
  return index_of(next) == count_of(next) ? next & ~std::uint64_t{0xff} : next;
}

// What the sender wants to know of a line.
struct LineFacts {
  std::uint64_t address;
  std::uint32_t capacity;
  std::int32_t tag;
  std::uint32_t rkey;  // of rail 0
  std::uint32_t number;
  std::uint8_t index;
  std::uint8_t count;
  std::uint8_t epoch;
};

// The layout of CreditLine once more, by word: reading the struct itself compiles to code that goes
// through memory twice. A test compares the two.
inline constexpr std::size_t kAddressWord = 0;
inline constexpr std::size_t kSizeAndTagWord = 1;
inline constexpr std::size_t kFirstKeysWord = 2;
inline constexpr std::size_t kOrderWord = 6;
inline constexpr std::size_t kSumWord = 7;

constexpr std::uint64_t address_of(const LineWords& words) noexcept { return words[kAddressWord]; }
constexpr std::uint32_t capacity_of(const LineWords& words) noexcept {
  return static_cast<std::uint32_t>(words[kSizeAndTagWord]);
}
constexpr std::int32_t tag_of(const LineWords& words) noexcept {
  return static_cast<std::int32_t>(words[kSizeAndTagWord] >> 32);
}
// Of rail 0.
constexpr std::uint32_t rkey_of(const LineWords& words) noexcept {
  return static_cast<std::uint32_t>(words[kFirstKeysWord]);
}

inline LineFacts facts_of(const LineWords& words) noexcept {
  const std::uint64_t order = words[kOrderWord];
  return {.address = address_of(words),
          .capacity = capacity_of(words),
          .tag = tag_of(words),
          .rkey = rkey_of(words),
          .number = number_of(order),
          .index = index_of(order),
          .count = count_of(order),
          .epoch = static_cast<std::uint8_t>(order >> 24)};
}

// What a receive says of one buffer.
struct Granted {
  std::uint64_t address;
  std::uint32_t capacity;
  std::int32_t tag;
  const std::array<std::uint32_t, kMaxRails>* rkeys;
};

// Puts a sealed line where the grant will take it from.
BL_INLINED void write_line(CreditLine& place, const Granted& granted, std::uint64_t order,
                           Rails rails) noexcept {
  auto* const bytes = reinterpret_cast<std::byte*>(&place);
  const auto put = [bytes](std::size_t i, std::uint64_t word) {
    std::memcpy(bytes + i * sizeof word, &word, sizeof word);
    return word;
  };
  const auto keys = [&granted](std::size_t first) {
    std::uint64_t word = 0;
    std::memcpy(&word, &(*granted.rkeys)[first], sizeof word);
    return word;
  };
  LineWords words;
  words[0] = put(0, granted.address);
  words[1] =
      put(1, granted.capacity | std::uint64_t{static_cast<std::uint32_t>(granted.tag)} << 32);
  words[2] = put(2, keys(0));
  if (rails == Rails::kMany) [[unlikely]] {
    words[3] = put(3, keys(2));
    words[4] = put(4, keys(4));
    words[5] = put(5, keys(6));
  }
  words[6] = put(6, order);
  put(7, sum_of(words, rails));
}

// The NIC writes while we read: what the compiler must not do is read a word twice.
inline std::uint64_t word_of(const CreditLine& in_ring, std::size_t i) noexcept {
  using Word [[gnu::may_alias]] = std::uint64_t;
  return reinterpret_cast<const volatile Word*>(&in_ring)[i];
}
inline std::uint64_t order_in(const CreditLine& in_ring) noexcept {
  return word_of(in_ring, kOrderWord);
}

// Whether the line has begun to arrive.
inline bool is_there(const CreditLine& in_ring, std::uint32_t position) noexcept {
  return number_of(order_in(in_ring)) == position + 1;
}

// What lies in the ring at the moment. False: it is not line `position`, or not all of it.
inline bool read_line(const CreditLine& in_ring, std::uint32_t position, Rails rails,
                      LineFacts& out) noexcept {
  LineWords words;
  words[kOrderWord] = order_in(in_ring);
  if (number_of(words[kOrderWord]) != position + 1) return false;
  words[0] = word_of(in_ring, 0);
  words[1] = word_of(in_ring, 1);
  words[2] = word_of(in_ring, 2);
  if (rails == Rails::kMany) [[unlikely]] {
    words[3] = word_of(in_ring, 3);
    words[4] = word_of(in_ring, 4);
    words[5] = word_of(in_ring, 5);
  }
  if (word_of(in_ring, kSumWord) != sum_of(words, rails)) return false;
  out = facts_of(words);
  return true;
}

}  // namespace beeline::wire
