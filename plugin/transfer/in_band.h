// SPDX-License-Identifier: Apache-2.0
//
// One end's part in the exchange of messages in-band (plugin/wire/in_band.h): what it has to say,
// and what it has heard. It has no clock and posts nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "plugin/repair/times.h"
#include "plugin/wire/in_band.h"
#include "plugin/wire/message_frame.h"

namespace beeline {

class InBand {
 public:
  // A frame. It takes the place of one of the same kind that waits: a message says how its sender
  // stands, so the last of each kind is enough.
  void add(std::uint32_t kind, wire::Bytes frame);
  // When the cell has to be written.
  std::int64_t due_ns() const noexcept { return due_ns_; }
  // It cannot be written now.
  void put_off(std::int64_t now_ns) noexcept { due_ns_ = now_ns + times::kRepeats.first_ns; }
  // For the write that is due. Until it is over, the caller must not change the cell.
  void fill(wire::InBandCell& cell, std::int64_t now_ns) noexcept;

  // The cell that the other end has written. Afterwards next() gives the frames, as often as there
  // is one. An error: the other end has broken the protocol.
  void take(const wire::InBandCell& cell);
  Result<std::optional<wire::Frame>> next() { return heard_.next(); }

 private:
  struct Frame {
    std::uint32_t kind = 0;
    wire::Bytes bytes;
  };

  void begin_piece() noexcept;
  bool has_open_piece() const noexcept { return piece_size_ != 0; }

  std::deque<Frame> frames_;    // the first one is being sent
  std::size_t sent_ = 0;        // bytes of it that the other end has taken
  std::size_t piece_size_ = 0;  // of the piece that it has not; 0: there is none
  std::uint32_t number_ = 0;    // of the newest piece
  std::uint32_t taken_ = 0;     // the newest piece of the other end
  std::uint32_t writes_ = 0;
  std::int64_t due_ns_ = times::kNever;
  std::int64_t delay_ns_ = times::kRepeats.first_ns;
  wire::FrameSplitter heard_;
};

// Which of the numbered messages of the other end have come, since each travels by two ways.
class SeenSerials {
 public:
  // Whether this is the first copy. One that is far behind the newest does not count as that, and
  // 0 is no number.
  bool add(std::uint32_t serial) noexcept {
    if (serial == 0) return true;
    const auto ahead = static_cast<std::int32_t>(serial - newest_);
    if (ahead > 0) {
      bits_ = ahead < kWindow ? bits_ << ahead | 1 : 1;
      newest_ = serial;
      return true;
    }
    if (ahead <= -kWindow || (bits_ >> -ahead & 1) != 0) return false;
    bits_ |= std::uint64_t{1} << -ahead;
    return true;
  }

 private:
  static constexpr std::int32_t kWindow = 64;
  std::uint32_t newest_ = 0;
  std::uint64_t bits_ = 1;  // the newest, and those before it
};

}  // namespace beeline
