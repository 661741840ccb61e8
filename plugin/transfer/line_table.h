// SPDX-License-Identifier: Apache-2.0
//
// The receiver's table of the lines in the ring: which receive each belongs to, and, with several
// paths, what of its message has arrived and which path has granted it. After a path was fenced,
// the table makes this end's report, and finds in the sender's which lines to grant again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "plugin/transfer/path.h"
#include "plugin/transfer/path_reports.h"
#include "plugin/wire/credit.h"
#include "plugin/wire/message_remake.h"
#include "plugin/wire/reports.h"

namespace beeline {

class LineTable {
 public:
  // The request that a line belongs to. Written as one word.
  struct alignas(8) Owner {
    enum State : std::uint8_t {
      kNothing,  // the line's message has arrived, or there is none
      kAwaited,
      kOptional,  // it has not arrived, and the request does not wait for it
    };
    std::uint8_t request;
    std::uint8_t index;
    State state;
    std::uint8_t path;  // by which the line was granted
    std::uint32_t position;

    bool waits() const noexcept { return state != kNothing; }
    // The word for line 0 of a receive.
    static constexpr std::uint64_t packed(std::uint64_t request, State state, std::uint64_t path,
                                          std::uint32_t position) noexcept {
      return request | std::uint64_t{state} << 16 | path << 24 | std::uint64_t{position} << 32;
    }
  };
  static_assert(sizeof(Owner) == 8 && offsetof(Owner, index) == 1 && offsetof(Owner, state) == 2 &&
                offsetof(Owner, path) == 3 && offsetof(Owner, position) == 4);
  // The next line of the same receive has a word that is larger by this: by 1 in `position` and in
  // `index`.
  static constexpr std::uint64_t kNextOwner = (std::uint64_t{1} << 32) + (std::uint64_t{1} << 8);

  // Kept if there are several paths, or once the only one has failed.
  struct Records {
    // By line: the chunks that have arrived, of a message whose notices have not all arrived.
    std::array<wire::ChunkMask, wire::kMaxLines> chunks{};
    // By line: a bit for each rail that has carried data.
    std::array<std::uint8_t, wire::kMaxLines> carried{};
    // While there are open reports, the message of any line may take two receives of a path, since
    // it may be sent again. Afterwards, those of lines before `sent_again_end` may.
    std::uint8_t open_reports = 0;
    std::uint32_t sent_again_end = 0;
  };

  // `lines` is this end's copy of the ring. In the functions below, `next` is the position of the
  // next line.
  explicit LineTable(const wire::CreditLine* lines) noexcept : lines_(lines) {}

  Owner& owner(std::size_t place) noexcept { return owners_[place]; }

  // In Connection::extra.
  void use_records(Records* records) noexcept { records_ = records; }
  // False: no memory. All data so far has come by this rail.
  bool make_records(std::uint8_t rail) noexcept;
  bool has_records() const noexcept { return records_ != nullptr; }
  wire::ChunkMask& chunks(std::size_t place) noexcept { return records_->chunks[place]; }
  // Data for the line at this place has come by this rail.
  void note_carrier(std::size_t place, std::uint8_t rail) noexcept {
    std::uint8_t& carried = records_->carried[place];
    const std::uint8_t before = records_->chunks[place] != 0 ? carried : std::uint8_t{0};
    carried = static_cast<std::uint8_t>(before | 1U << rail);
  }
  // All of its message has come by this rail.
  void note_only_carrier(std::size_t place, std::uint8_t rail) noexcept {
    records_->chunks[place] = 0;
    records_->carried[place] = static_cast<std::uint8_t>(1U << rail);
  }
  // The rails through which the data of the newest receive into `address` has come, as far as that
  // is known: all of them if it has not come yet, or if its line is not in the ring any more.
  std::uint8_t rails_that_carried(std::uint64_t address, std::uint32_t next) const noexcept;

  // Calls `f(owner, line)` for each line whose message has not arrived.
  template <class F>
  void each_waiting(F&& f) const {
    for (const Owner& owner : owners_) {
      if (owner.waits()) f(owner, lines_[owner.position % wire::kMaxLines]);
    }
  }
  // How many of them there are, and whether a message may take two receives of a path.
  struct Expected {
    std::uint32_t lines = 0;
    bool is_sent_again = false;
  };
  Expected expected(std::uint32_t next) noexcept;
  // The first line whose message has not arrived although a receive waits for it.
  std::uint32_t settled(std::uint32_t next) const noexcept;
  bool waits_below(std::uint32_t end) const noexcept;
  bool waits_from(std::uint32_t begin) const noexcept;

  // --- After a path was fenced ---

  // Until resolve(), a message may take two receives of a path.
  void begin_report() noexcept { ++records_->open_reports; }
  // None: the peer has broken the protocol.
  std::optional<wire::ReceiverReport> take_report(std::uint32_t next) noexcept;
  // With the sender's report about the path of this number.
  void resolve(std::uint8_t path, const wire::SenderReport& report, std::uint32_t next) noexcept;
  // Those of the lines whose data has not come and that are before `end`.
  wire::LineSet missing_of(const wire::LineSet& lines, std::uint32_t end) const noexcept;
  // Whether a message for this line may still come, although it counts as arrived.
  bool ignores(std::uint16_t line) const noexcept;
  // NCCL may have seen the data of an optional receive that was reported missing, and grant its
  // buffer again, before the same data is written once more. It has to wait for that.
  bool has_missing() const noexcept { return !missing_.empty(); }
  bool is_missing(std::uint64_t address, std::size_t capacity) const noexcept;
  void forget_missing_that_came() noexcept;
  // Some lines have to be granted again. `grant(first, count)` is called for lines that follow each
  // other, and calls grant_again(). False: no more now.
  bool has_lost() const noexcept { return !lost_.empty(); }
  template <class Grant>
  void each_lost_run(Grant&& grant) {
    for (std::uint32_t place = 0; place < wire::kMaxLines; ++place) {
      std::uint32_t end = place;
      while (end < wire::kMaxLines && lost_.has(end)) ++end;
      if (end == place) continue;
      if (!grant(place, end - place)) return;
      place = end;
    }
  }
  // These lines are granted by `path` from now on.
  void grant_again(std::uint32_t first, std::uint32_t count, std::uint8_t path) noexcept;

 private:
  std::array<GrantedLine, wire::kMaxLines> granted() const noexcept;

  const wire::CreditLine* lines_;
  std::uint32_t oldest_ = 0;  // no line before this position waits
  std::array<Owner, wire::kMaxLines> owners_{};
  wire::LineSet lost_;     // to be granted again
  wire::LineSet missing_;  // of optional receives, that this end has reported as missing
  // Optional receives that the last report has counted as arrived, because NCCL had seen their
  // data.
  wire::LineSet ignored_;
  Records* records_ = nullptr;
  std::unique_ptr<Records> own_records_;  // unless they are in Connection::extra
};

}  // namespace beeline
