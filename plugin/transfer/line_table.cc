// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/line_table.h"

#include <algorithm>
#include <new>

#include "common/check/assert.h"

namespace beeline {

bool LineTable::make_records(std::uint8_t rail) noexcept {
  own_records_.reset(new (std::nothrow) Records);
  records_ = own_records_.get();
  if (records_ == nullptr) return false;
  records_->carried.fill(static_cast<std::uint8_t>(1U << rail));
  return true;
}

std::uint8_t LineTable::rails_that_carried(std::uint64_t address,
                                           std::uint32_t next) const noexcept {
  constexpr std::uint8_t kAll = 0xff;
  for (std::uint32_t back = 1; back <= wire::kMaxLines; ++back) {
    const std::uint32_t position = next - back;
    const std::uint32_t place = position % wire::kMaxLines;
    const Owner& owner = owners_[place];
    if (owner.position != position) break;  // there was no such line
    if (lines_[place].address == address) return owner.waits() ? kAll : records_->carried[place];
  }
  return kAll;
}

LineTable::Expected LineTable::expected(std::uint32_t next) noexcept {
  Expected expected = {.lines = 0, .is_sent_again = records_->open_reports != 0};
  constexpr std::uint32_t kLines = wire::kMaxLines;
  if (next - oldest_ > kLines) oldest_ = next - kLines;
  while (oldest_ != next && !owners_[oldest_ % kLines].waits()) ++oldest_;
  for (std::uint32_t position = oldest_; position != next; ++position) {
    if (!owners_[position % kLines].waits()) continue;
    ++expected.lines;
    expected.is_sent_again =
        expected.is_sent_again || wire::is_before(position, records_->sent_again_end);
  }
  return expected;
}

std::uint32_t LineTable::settled(std::uint32_t next) const noexcept {
  std::uint32_t first = next;
  for (const Owner& owner : owners_) {
    if (owner.state == Owner::kAwaited && wire::is_before(owner.position, first)) {
      first = owner.position;
    }
  }
  return first;
}

bool LineTable::waits_below(std::uint32_t end) const noexcept {
  return std::ranges::any_of(owners_, [&](const Owner& owner) {
    return owner.waits() && wire::is_before(owner.position, end);
  });
}

bool LineTable::waits_from(std::uint32_t begin) const noexcept {
  return std::ranges::any_of(owners_, [&](const Owner& owner) {
    return owner.waits() && !wire::is_before(owner.position, begin);
  });
}

// All lines in the ring, in the order of their places.
std::array<GrantedLine, wire::kMaxLines> LineTable::granted() const noexcept {
  std::array<GrantedLine, wire::kMaxLines> lines;
  for (std::size_t place = 0; place < lines.size(); ++place) {
    const Owner& owner = owners_[place];
    lines[place] = {.position = owner.position,
                    .capacity = lines_[place].capacity,
                    .address = lines_[place].address,
                    .arrived = owner.waits() ? records_->chunks[place] : 0,
                    .carrier = owner.path,
                    .waits = owner.waits(),
                    .is_optional = owner.state == Owner::kOptional,
                    .is_reported_missing = missing_.has(owner.position)};
  }
  return lines;
}

std::optional<wire::ReceiverReport> LineTable::take_report(std::uint32_t next) noexcept {
  std::array<GrantedLine, wire::kMaxLines> lines = granted();
  const auto report = take_receiver_report(next, lines);
  missing_ = {};
  for (std::size_t place = 0; place < lines.size(); ++place) {
    const GrantedLine& line = lines[place];
    if (owners_[place].waits() && !line.waits) {
      owners_[place].state = Owner::kNothing;
      records_->chunks[place] = 0;
      ignored_.add(line.position);
    }
    if (line.waits && line.is_optional) missing_.add(line.position);
  }
  return report;
}

void LineTable::resolve(std::uint8_t path, const wire::SenderReport& report,
                        std::uint32_t next) noexcept {
  BL_ASSERT(records_->open_reports != 0, "each report of this end is resolved once");
  --records_->open_reports;
  records_->sent_again_end = next;
  std::array<GrantedLine, wire::kMaxLines> lines = granted();
  resolve_grants(report, path, lines);
  for (std::size_t place = 0; place < lines.size(); ++place) {
    const bool is_lost = owners_[place].waits() && lines[place].carrier == kGrantLost;
    if (is_lost) lost_.add(lines[place].position);
  }
}

wire::LineSet LineTable::missing_of(const wire::LineSet& lines, std::uint32_t end) const noexcept {
  wire::LineSet missing;
  for (const Owner& owner : owners_) {
    const bool is_one = lines.has(owner.position) && wire::is_before(owner.position, end);
    if (owner.waits() && is_one) missing.add(owner.position);
  }
  return missing;
}

bool LineTable::ignores(std::uint16_t line) const noexcept {
  const auto newest = static_cast<std::uint16_t>(owners_[line % wire::kMaxLines].position);
  const bool is_recent =
      newest == line || static_cast<std::uint16_t>(newest - line) == wire::kMaxLines;
  return ignored_.has(line) && is_recent;
}

bool LineTable::is_missing(std::uint64_t address, std::size_t capacity) const noexcept {
  return overlaps_reported_line(granted(), address, static_cast<std::uint32_t>(capacity));
}

void LineTable::forget_missing_that_came() noexcept {
  for (std::uint32_t place = 0; place < wire::kMaxLines; ++place) {
    if (!owners_[place].waits()) missing_.remove(place);
  }
}

void LineTable::grant_again(std::uint32_t first, std::uint32_t count, std::uint8_t path) noexcept {
  for (std::uint32_t place = first; place < first + count; ++place) {
    lost_.remove(place);
    owners_[place].path = path;
  }
}

}  // namespace beeline
