// SPDX-License-Identifier: Apache-2.0
//
// The credit line: describes one receive buffer, and is written by RDMA into the sender's credit
// ring. The line at position p is at index p % kMaxLines. The lines of one irecv follow each other,
// so that one WRITE can grant several.
//
// The CPU may see the bytes of an RDMA WRITE in any order, so that a line may look half old and
// half new. Each line therefore contains its number and a sum over the words in use. It counts only
// if both are right.
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
  std::uint8_t epoch;                          // always 0; the sender passes it on
  std::uint32_t number;                        // p + 1, so that a ring of zeroes contains no line
  std::uint64_t sum;
};
static_assert(sizeof(CreditLine) == 64 && offsetof(CreditLine, index) == 48 &&
              offsetof(CreditLine, number) == 52 && offsetof(CreditLine, sum) == 56);

// Positions count up and wrap around. Those in flight are close together, so the comparison holds.
constexpr bool is_before(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b) < 0;
}

inline constexpr std::size_t kCreditRingBytes = kMaxLines * sizeof(CreditLine);

// A line as eight words, each of which fits into a register.
using LineWords = std::array<std::uint64_t, 8>;
static_assert(sizeof(LineWords) == sizeof(CreditLine) && std::endian::native == std::endian::little,
              "both ends are little-endian machines");

// Most comms have at most this number of rails. The words of the other rails' keys are then neither
// written, summed nor read.
inline constexpr std::size_t kFewRails = 2;
enum class Rails : std::uint8_t { kFew, kMany };
constexpr Rails rails_of(std::size_t count) noexcept {
  return count <= kFewRails ? Rails::kFew : Rails::kMany;
}

// A polynomial over all words in use but the sum itself. Because the factor is odd, a change of one
// word always changes the sum. Because it is large, so do changes of two words by small amounts, as
// between addresses, sizes, tags and keys of successive lines. It fits into an instruction.
inline constexpr std::uint64_t kSumFactor = 0x5851'f42d;
constexpr std::uint64_t sum_of(const LineWords& words, Rails rails) noexcept {
  std::uint64_t sum = words[0];
  sum = sum * kSumFactor + words[1];
  sum = sum * kSumFactor + words[2];
  if (rails == Rails::kMany) [[unlikely]] {
    sum = sum * kSumFactor + words[3];
    sum = sum * kSumFactor + words[4];
    sum = sum * kSumFactor + words[5];
  }
  return sum * kSumFactor + words[6];
}

// The word of a line that contains its number, its place in the irecv, and the number of notices,
// which is always one.
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
// Whether the irecv has several buffers: its count is not 1.
constexpr bool is_grouped(std::uint64_t order) noexcept { return (order & 0xfe00) != 0; }
// Adding this gives the order word of the next line of the same irecv. An overflow of the number is
// lost at the top of the word.
inline constexpr std::uint64_t kNextLine = (std::uint64_t{1} << 32) + 1;
// The order word of the next line. After the last line of an irecv, that is the first of another
// irecv with as many buffers.
constexpr std::uint64_t order_after(std::uint64_t order) noexcept {
  const std::uint64_t next = order + kNextLine;
  return index_of(next) == count_of(next) ? next & ~std::uint64_t{0xff} : next;
}

// The fields of a line that the sender needs.
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

// One buffer of an irecv.
struct Granted {
  std::uint64_t address;
  std::uint32_t capacity;
  std::int32_t tag;
  const std::array<std::uint32_t, kMaxRails>* rkeys;
};

// Writes a line with its sum to the memory that the grant's WRITE reads.
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

// The NIC writes while the CPU reads. Volatile, so that the compiler reads each word once.
inline std::uint64_t word_of(const CreditLine& in_ring, std::size_t i) noexcept {
  using Word [[gnu::may_alias]] = std::uint64_t;
  return reinterpret_cast<const volatile Word*>(&in_ring)[i];
}
inline std::uint64_t order_in(const CreditLine& in_ring) noexcept {
  return word_of(in_ring, kOrderWord);
}

// The key of one rail, of a line that is complete.
inline std::uint32_t rkey_in(const CreditLine& in_ring, std::size_t rail) noexcept {
  using Key [[gnu::may_alias]] = std::uint32_t;
  return reinterpret_cast<const volatile Key*>(&in_ring.rkeys)[rail];
}

// Whether the number of this line has arrived. Other parts of it may be missing.
inline bool is_there(const CreditLine& in_ring, std::uint32_t position) noexcept {
  return number_of(order_in(in_ring)) == position + 1;
}

// Reads the first three words, and returns the sum of all words in use. The order word is there.
BL_INLINED std::uint64_t read_and_sum(const CreditLine& in_ring, Rails rails,
                                      LineWords& words) noexcept {
  words[0] = word_of(in_ring, 0);
  words[1] = word_of(in_ring, 1);
  words[2] = word_of(in_ring, 2);
  std::uint64_t sum = (words[0] * kSumFactor + words[1]) * kSumFactor + words[2];
  if (rails == Rails::kMany) [[unlikely]] {
    sum = sum * kSumFactor + word_of(in_ring, 3);
    sum = sum * kSumFactor + word_of(in_ring, 4);
    sum = sum * kSumFactor + word_of(in_ring, 5);
  }
  return sum * kSumFactor + words[kOrderWord];
}

// Reads the line if it is complete. False: the ring holds another line there, or only a part of it.
inline bool read_line(const CreditLine& in_ring, std::uint32_t position, Rails rails,
                      LineFacts& out) noexcept {
  LineWords words;
  words[kOrderWord] = order_in(in_ring);
  if (number_of(words[kOrderWord]) != position + 1) return false;
  if (read_and_sum(in_ring, rails, words) != word_of(in_ring, kSumWord)) return false;
  out = facts_of(words);
  return true;
}

}  // namespace beeline::wire
