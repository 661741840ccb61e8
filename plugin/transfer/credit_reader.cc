// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/credit_reader.h"

#include "common/base/clock.h"

namespace beeline {

CreditReader::CreditReader(CreditCursor& cursor, const wire::CreditLine* ring, wire::Rails rails,
                           bool is_fast) noexcept
    : cursor_(cursor), ring_(ring), rails_(rails), is_fast_(is_fast) {
  await_in_order(wire::order_of(1, 0, 1, 0));
}

void CreditReader::set_slow() noexcept {
  is_fast_ = false;
  cursor_.await(ring_, next(), cursor_.order() & ~wire::kOneNotice);
}

bool CreditReader::has_come(std::uint32_t position) const noexcept {
  wire::LineFacts line;
  return wire::read_line(ring_[position % wire::kMaxLines], position, rails_, line);
}

// Reads the line into its place in lines_. `count` 0: any. False: it has not come, or not all of
// it, or it does not belong there. The rest of a line follows its number within microseconds; one
// that stays incomplete was damaged, and waiting for it would never end.
bool CreditReader::read(std::uint32_t position, std::uint8_t index, std::uint8_t count) noexcept {
  const wire::CreditLine& in_ring = ring_[position % wire::kMaxLines];
  wire::LineFacts& line = lines_[index];
  if (wire::read_line(in_ring, position, rails_, line)) {
    torn_since_ns_ = 0;
    const bool fits =
        count == 0 ? line.count != 0 && line.count <= wire::kMaxReceives : line.count == count;
    if (fits && line.index == index) return true;
    error_ = "a credit line that belongs to no receive";
  } else if (!wire::is_there(in_ring, position)) {
    torn_since_ns_ = 0;
  } else if (torn_since_ns_ == 0) {
    torn_since_ns_ = now_ns();
  } else if (now_ns() - torn_since_ns_ > kNsPerSec) {
    error_ = "a credit line whose check sum is wrong";
  }
  return false;
}

const wire::LineFacts* CreditReader::find(int tag) noexcept {
  if (count_ == 0) {
    // The first line of an irecv, or the next of the current one.
    const std::uint8_t count = index() == 0 ? std::uint8_t{0} : wire::count_of(cursor_.order());
    if (!read(next(), index(), count)) return nullptr;
    const wire::LineFacts& line = lines_[index()];
    await_in_order(wire::order_of(line.number, line.index, line.count, line.epoch));
    if (line.tag == tag) return &line;
    if (line.count == 1) return nullptr;
    first_ = next() - line.index;
    count_ = line.count;
    next_ = line.index;
    read_ = static_cast<std::uint8_t>(line.index + 1);
    taken_ = 0;
    await_by_tag();
  }
  for (std::uint8_t i = next_; i < count_; ++i) {
    if ((taken_ >> i & 1) != 0) continue;
    if (i >= read_) {
      if (!read(first_ + i, i, count_)) return nullptr;
      read_ = static_cast<std::uint8_t>(i + 1);
    }
    if (lines_[i].tag == tag) return &lines_[i];
  }
  return nullptr;
}

void CreditReader::await_in_order(std::uint64_t order) noexcept {
  cursor_.await(ring_, wire::number_of(order) - 1, is_fast_ ? order : order & ~wire::kOneNotice);
}

void CreditReader::await_by_tag() noexcept {
  const std::uint32_t position = first_ + next_;
  cursor_.await(ring_, position, std::uint64_t{position + 1} << 32);
}

// Once every line that was read is taken, the rest of the irecv is taken in order again.
void CreditReader::take(const wire::LineFacts& line) noexcept {
  if (count_ == 0) return cursor_.await_after(ring_, cursor_.order());
  taken_ = static_cast<std::uint8_t>(taken_ | 1U << line.index);
  while ((taken_ >> next_ & 1) != 0) ++next_;
  const bool is_empty = next_ == count_;
  if (next_ < read_ && !is_empty) return await_by_tag();
  const auto next = is_empty ? std::uint8_t{0} : next_;
  await_in_order(wire::order_of(first_ + next_ + 1, next, count_, line.epoch));
  count_ = 0;
}

}  // namespace beeline
