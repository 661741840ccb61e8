// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/in_band.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "common/check/assert.h"

namespace beeline {

void InBand::add(std::uint32_t kind, wire::Bytes frame) {
  BL_ASSERT(!frame.empty(), "a frame has a head");
  const auto first = frames_.begin() + (has_open_piece() ? 1 : 0);
  frames_.erase(std::remove_if(first, frames_.end(),
                               [kind](const Frame& older) { return older.kind == kind; }),
                frames_.end());
  frames_.push_back({.kind = kind, .bytes = std::move(frame)});
  if (has_open_piece()) return;
  begin_piece();
}

void InBand::begin_piece() noexcept {
  delay_ns_ = times::kRepeats.first_ns;
  piece_size_ =
      frames_.empty() ? 0 : std::min(frames_.front().bytes.size() - sent_, wire::kInBandBytes);
  if (piece_size_ == 0) return;
  ++number_;
  due_ns_ = 0;
}

void InBand::fill(wire::InBandCell& cell, std::int64_t now_ns) noexcept {
  cell = {};
  cell.write = ++writes_;
  cell.number = number_;
  cell.taken = taken_;
  due_ns_ = times::kNever;
  if (has_open_piece()) {
    cell.size = static_cast<std::uint32_t>(piece_size_);
    std::memcpy(cell.data.data(), frames_.front().bytes.data() + sent_, piece_size_);
    due_ns_ = now_ns + delay_ns_;
    delay_ns_ = times::kRepeats.after(delay_ns_);
  }
  wire::seal(cell);
}

void InBand::take(const wire::InBandCell& cell) {
  if (has_open_piece() && cell.taken == number_) {
    sent_ += std::exchange(piece_size_, 0);
    due_ns_ = times::kNever;
    if (sent_ == frames_.front().bytes.size()) {
      frames_.pop_front();
      sent_ = 0;
    }
    begin_piece();
  }
  // A piece that has come before comes again if the other end does not know that it has.
  if (cell.size == 0) return;
  due_ns_ = 0;
  if (cell.number != taken_ + 1) return;
  taken_ = cell.number;
  heard_.append(std::span(cell.data).first(cell.size));
}

}  // namespace beeline
