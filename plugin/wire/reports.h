// SPDX-License-Identifier: Apache-2.0
//
// What the two ends of a path tell each other when it has failed. Each report is about one
// generation of one path, and is taken when nothing can arrive on it any more and all that had
// arrived has been counted. It must be exact: what it calls missing is sent again, and would be
// written a second time, into memory that the caller has got back, if it had arrived after all.
//
// message_bytes.h explains fields().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plugin/wire/chunks.h"
#include "plugin/wire/credit.h"
#include "plugin/wire/limits.h"

namespace beeline::wire {

// One bit for each place of the ring of credit lines. A line is named by its position; two lines
// that are not further apart than the ring is long have different places.
class LineSet {
 public:
  constexpr void add(std::uint32_t position) noexcept { word(position) |= bit(position); }
  constexpr void remove(std::uint32_t position) noexcept { word(position) &= ~bit(position); }
  constexpr bool has(std::uint32_t position) const noexcept {
    return (words_[place(position) / kBits] & bit(position)) != 0;
  }
  constexpr bool empty() const noexcept { return *this == LineSet{}; }
  constexpr bool operator==(const LineSet&) const noexcept = default;

  static constexpr std::size_t kBits = 64;
  static_assert(kMaxLines % kBits == 0);
  static void fields(auto& io, auto& set) { io(set.words_); }

 private:
  static constexpr std::size_t place(std::uint32_t position) noexcept {
    return position % kMaxLines;
  }
  static constexpr std::uint64_t bit(std::uint32_t position) noexcept {
    return std::uint64_t{1} << (place(position) % kBits);
  }
  constexpr std::uint64_t& word(std::uint32_t position) noexcept {
    return words_[place(position) / kBits];
  }

  std::array<std::uint64_t, kMaxLines / kBits> words_{};
};

// Whether `position` is one of the kMaxLines positions before `end`.
constexpr bool is_in_ring_before(std::uint32_t end, std::uint32_t position) noexcept {
  return end - 1 - position < kMaxLines;
}

// What the receiver has of all that the sender gave to the path.
struct ReceiverReport {
  // So many messages can be on their way in several parts, because the sender keeps no more
  // records.
  static constexpr std::size_t kMostPartial = 32;
  struct Partial {
    std::uint32_t position = 0;
    ChunkMask arrived = 0;  // not 0

    static void fields(auto& io, auto& line) { io(line.position, line.arrived); }
    bool operator==(const Partial&) const = default;
  };

  std::uint32_t next = 0;  // position of the first line that is not granted
  LineSet whole;           // of the kMaxLines lines before `next`: all has arrived
  std::array<Partial, kMostPartial> partial{};
  std::uint8_t partial_count = 0;

  static void fields(auto& io, auto& report) {
    io(report.next, report.whole);
    io.first(report.partial, report.partial_count);
    io.require(is_consistent(report));
  }
  bool operator==(const ReceiverReport&) const = default;
};

// What the sender holds of all that the receiver granted over the path.
struct SenderReport {
  std::uint32_t taken = 0;  // position of the first line that no isend has taken
  LineSet held;  // of the kMaxLines lines from `taken` on: a complete line is in the ring

  static void fields(auto& io, auto& report) { io(report.taken, report.held); }
  bool operator==(const SenderReport&) const = default;
};

// For a report that was read from a message.
constexpr bool is_consistent(const ReceiverReport& report) noexcept {
  if (report.partial_count > ReceiverReport::kMostPartial) return false;
  LineSet seen = report.whole;
  for (std::size_t i = 0; i < report.partial_count; ++i) {
    const ReceiverReport::Partial& line = report.partial[i];
    if (line.arrived == 0 || !is_in_ring_before(report.next, line.position)) return false;
    if (seen.has(line.position)) return false;
    seen.add(line.position);
  }
  return true;
}

}  // namespace beeline::wire
