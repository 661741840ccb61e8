// SPDX-License-Identifier: Apache-2.0
//
// The receiving end after a path has failed: lines that the sender has not got are written again
// over other paths, with the same bytes.
#include <algorithm>

#include "common/check/assert.h"
#include "plugin/transfer/recv_comm.h"

namespace beeline {

std::optional<wire::ReceiverReport> RecvComm::take_report() {
  BL_ASSERT(has_several_paths(), "records are kept since the path was fenced");
  table_.begin_report();
  gate_.set_must_recount();
  (void)post_receives_on_all();
  return table_.take_report(next_);
}

// All data so far has arrived by the only path.
bool RecvComm::keep_records() { return table_.make_records(only_path().rail); }

void RecvComm::leave_path(Path& path) {
  if (&grants_.path() != &path) return;
  const auto other = std::ranges::find(paths(), true, &Path::grants);
  if (other != paths().end()) grants_.use(*other);
}

void RecvComm::on_joined(Path& path) {
  path.posted_receives = 0;
  path.next_receive = 0;
  path.to_next_signal = GrantWriter::kSignalEvery;
  path.is_probing = false;
  (void)post_receives_on_all();
}

bool RecvComm::lose_device_of(Path& path) {
  if (!flush_.leave_device_of(path)) return false;
  path.is_device_left = true;
  check_stranded();
  return true;
}

// A message whose buffer is registered only with devices that are gone.
void RecvComm::check_stranded() {
  if (!has_usable_path() || connection_.receiver_rails == 1) return;
  const std::shared_ptr<RegisteredBuffers> all = buffers();
  bool is_stranded = false;
  table_.each_waiting([&](const Owner&, const wire::CreditLine& line) {
    is_stranded = is_stranded || std::ranges::none_of(paths(), [&](const Path& path) {
                    return !path.is_device_left &&
                           all->remote_key(path.rail, line.address, line.capacity).has_value();
                  });
  });
  if (!is_stranded) return;
  (void)events_.on_fault(*this, Errc::kSystem, "receive",
                         "a buffer is registered only with devices that are gone");
}

bool RecvComm::swap_resources(Path& path, PathResources& made) {
  const bool moves_rail = made.device != path.rail_device;
  if (!flush_.swap(path, made, moves_rail)) return false;
  if (moves_rail) moved_rails_ |= static_cast<std::uint8_t>(1U << path.rail);
  return true;
}

std::optional<wire::LineKeys> RecvComm::line_keys(const Path& path) {
  if ((moved_rails_ >> path.rail & 1) == 0) return std::nullopt;
  wire::LineKeys keys = {.next = next_, .keys = {}};
  table_.each_waiting([&](const Owner& owner, const wire::CreditLine& line) {
    const auto key = buffers()->remote_key(path.rail, line.address, line.capacity);
    if (key) keys.keys.push_back({.position = owner.position, .key = *key});
  });
  return keys;
}

void RecvComm::begin_grants(Path& path) {
  // The path that was used last has other keys now, if it has another device.
  if (!grants_.path().grants || &grants_.path() == &path) grants_.use(path);
  check_stranded();
}

void RecvComm::resume(const Path& path, const wire::SenderReport& report) {
  BL_ASSERT(gate_.is_held() && !path.counts, "nothing of the path counts any more");
  table_.resolve(path.index, report, next_);
  grant_lost_lines();
}

bool RecvComm::regrant_rest() {
  grant_lost_lines();
  table_.forget_missing_that_came();
  return flush_.settle() || table_.has_lost() || table_.has_missing();
}

// Then it has taken a receive of which nothing is known any more.
bool RecvComm::ignores(std::uint16_t line) noexcept {
  const bool is_ignored = table_.ignores(line);
  if (is_ignored) gate_.set_must_recount();
  return is_ignored;
}

// Lines for which there is no room yet wait.
void RecvComm::grant_lost_lines() {
  if (!table_.has_lost()) return;
  Path& path = grants_.path();
  table_.each_lost_run([&](std::uint32_t first, std::uint32_t count) {
    if (!path.grants || path.send_free == 0) return false;
    table_.grant_again(first, count, path.index);
    return post_grant(first, count) == Errc::kOk;
  });
}

}  // namespace beeline
