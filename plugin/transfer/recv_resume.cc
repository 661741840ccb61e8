// SPDX-License-Identifier: Apache-2.0
//
// The receiving end after a path has failed: lines that the sender has not got are written again
// over other paths, with the same bytes.
#include <algorithm>
#include <array>
#include <new>

#include "common/check/assert.h"
#include "plugin/transfer/path_reports.h"
#include "plugin/transfer/recv_comm.h"

namespace beeline {

// Of all lines in the ring, in the order of their places.
std::array<GrantedLine, wire::kMaxLines> RecvComm::granted_lines() const noexcept {
  std::array<GrantedLine, wire::kMaxLines> lines;
  for (std::size_t place = 0; place < lines.size(); ++place) {
    const Owner& owner = owners_[place];
    lines[place] = {.position = owner.position,
                    .capacity = lines_[place].capacity,
                    .address = lines_[place].address,
                    .arrived = owner.waits() ? several_->chunks[place] : 0,
                    .carrier = owner.path,
                    .waits = owner.waits(),
                    .is_optional = owner.state == Owner::kOptional,
                    .is_reported_missing = missing_lines_.has(owner.position)};
  }
  return lines;
}

std::optional<wire::ReceiverReport> RecvComm::take_report() {
  BL_ASSERT(has_several_paths(), "records are kept since the path was fenced");
  ++several_->open_reports;
  gate_.set_must_recount();
  (void)post_receives_on_all(0);
  std::array<GrantedLine, wire::kMaxLines> lines = granted_lines();
  const auto report = take_receiver_report(next_, lines);
  missing_lines_ = {};
  for (std::size_t place = 0; place < lines.size(); ++place) {
    const GrantedLine& line = lines[place];
    if (owners_[place].waits() && !line.waits) {
      owners_[place].state = Owner::kNothing;
      several_->chunks[place] = 0;
      ignored_lines_.add(line.position);
    }
    if (line.waits && line.is_optional) missing_lines_.add(line.position);
  }
  return report;
}

// All data so far has arrived by the only path.
bool RecvComm::keep_records() {
  if (has_several_paths()) return true;
  records_.reset(new (std::nothrow) SeveralPaths);
  several_ = records_.get();
  if (several_ == nullptr) return false;
  several_->carried.fill(bit_of_rail(only_path().rail));
  fast_limit_ = 0;
  gate_.set_has_several_paths();
  return true;
}

void RecvComm::leave_path(Path& path) {
  if (grant_path_ != &path) return;
  const auto other = std::ranges::find(paths(), true, &Path::grants);
  if (other != paths().end()) grant_by(*other);
}

void RecvComm::on_joined(Path& path) {
  path.posted_receives = 0;
  path.next_receive = 0;
  path.to_next_signal = kSignalGrantsEvery;
  path.is_probing = false;
  (void)post_receives_on_all(0);
}

bool RecvComm::lose_device_of(Path& path) {
  const std::unique_lock lock(preparing_, std::try_to_lock);
  if (!lock) return false;
  path.is_device_left = true;
  // Another path of the rail may have a device that works already.
  const bool is_flushed = std::ranges::any_of(paths(), [&](const Path& other) {
    return &other != &path && other.rail == path.rail && other.resources.queues.loopback &&
           !other.resources.device->context->is_gone();
  });
  if (flusher_ != nullptr && !is_flushed) leave_rail(path.rail);
  check_stranded();
  return true;
}

// A message whose buffer is registered only with devices that are gone.
void RecvComm::check_stranded() {
  if (!has_usable_path() || connection_.receiver_rails == 1) return;
  const auto is_stranded = [this](const Owner& owner) {
    const wire::CreditLine& line = lines_[owner.position % wire::kMaxLines];
    return owner.waits() && std::ranges::none_of(paths(), [&](const Path& path) {
             return !path.is_device_left && line.rkeys[path.rail] != 0;
           });
  };
  if (std::ranges::any_of(owners_, is_stranded)) {
    (void)events_.on_fault(*this, Errc::kSystem, "receive",
                           "a buffer is registered only with devices that are gone");
  }
}

std::optional<wire::LineKeys> RecvComm::line_keys(const Path& path) {
  const std::uint8_t rail = path.rail;
  if ((moved_rails_ & bit_of_rail(rail)) == 0) return std::nullopt;
  wire::LineKeys keys = {.next = next_, .keys = {}};
  for (const Owner& owner : owners_) {
    if (!owner.waits()) continue;
    const wire::CreditLine& line = lines_[owner.position % wire::kMaxLines];
    const auto key = buffers()->remote_key(rail, line.address, line.capacity);
    if (key) keys.keys.push_back({.position = owner.position, .key = *key});
  }
  return keys;
}

void RecvComm::begin_grants(Path& path) {
  // The path that was used last has other keys now, if it has another device.
  if (!grant_path_->grants || grant_path_ == &path) grant_by(path);
  check_stranded();
}

void RecvComm::resume(const Path& path, const wire::SenderReport& report) {
  BL_ASSERT(gate_.is_held() && !path.counts, "nothing of the path counts any more");
  BL_ASSERT(several_->open_reports != 0, "each report of this end is resolved once");
  --several_->open_reports;
  several_->sent_again_end = next_;
  std::array<GrantedLine, wire::kMaxLines> lines = granted_lines();
  resolve_grants(report, path.index, lines);
  for (std::size_t place = 0; place < lines.size(); ++place) {
    const bool is_lost = owners_[place].waits() && lines[place].carrier == kGrantLost;
    if (is_lost) lost_lines_.add(lines[place].position);
  }
  grant_lost_lines();
}

wire::LineSet RecvComm::missing_of(const wire::LineSet& lines, std::uint32_t end) const noexcept {
  wire::LineSet missing;
  for (const Owner& owner : owners_) {
    const bool is_one = lines.has(owner.position) && wire::is_before(owner.position, end);
    if (owner.waits() && is_one) missing.add(owner.position);
  }
  return missing;
}

bool RecvComm::is_resuming() {
  if (!lost_lines_.empty()) grant_lost_lines();
  for (std::uint32_t place = 0; place < wire::kMaxLines; ++place) {
    if (!owners_[place].waits()) missing_lines_.remove(place);
  }
  return !lost_lines_.empty() || !missing_lines_.empty();
}

bool RecvComm::is_missing(std::uint64_t address, std::size_t capacity) const noexcept {
  return overlaps_reported_line(granted_lines(), address, static_cast<std::uint32_t>(capacity));
}

// Whether a message for this line may still come, although it counts as arrived. Then it has taken
// a receive of which nothing is known any more.
bool RecvComm::ignores(std::uint16_t line) noexcept {
  const auto newest = static_cast<std::uint16_t>(owners_[line % wire::kMaxLines].position);
  const bool is_recent =
      newest == line || static_cast<std::uint16_t>(newest - line) == wire::kMaxLines;
  const bool is_ignored = ignored_lines_.has(line) && is_recent;
  if (is_ignored) gate_.set_must_recount();
  return is_ignored;
}

// Lines for which there is no room yet wait.
void RecvComm::grant_lost_lines() {
  Path& path = *grant_path_;
  for (std::uint32_t place = 0; place < wire::kMaxLines; ++place) {
    if (!lost_lines_.has(place)) continue;
    if (!path.grants || path.send_free == 0) return;
    std::uint32_t end = place;
    for (; end < wire::kMaxLines && lost_lines_.has(end); ++end) {
      lost_lines_.remove(end);
      owners_[end].path = path.index;
    }
    if (post_grant(place, end - place) != Errc::kOk) return;
    place = end;
  }
}

}  // namespace beeline
