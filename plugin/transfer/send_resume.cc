// SPDX-License-Identifier: Apache-2.0
//
// The sending end after a path has failed: what the receiver has not got goes over other paths. The
// lines in the ring still name the receive buffers, because the receiver cannot use the place of a
// line again before the line's message has arrived.
#include <algorithm>
#include <new>
#include <utility>

#include "common/check/assert.h"
#include "plugin/transfer/path_reports.h"
#include "plugin/transfer/send_comm.h"

namespace beeline {

bool SendComm::has_usable_path() const noexcept {
  return std::ranges::any_of(paths(), &Path::posts);
}

// From now on isend takes the way for several paths, which checks whether a path is up.
bool SendComm::keep_records() {
  records_.reset(new (std::nothrow) SeveralPaths(paths(), false));
  several_ = records_.get();
  if (several_ == nullptr) return false;
  credits_.set_slow();
  end_short_path();
  return true;
}

bool SendComm::swap_resources(Path& path, PathResources& made) {
  const bool is_moved = made.device != path.rail_device;
  if (is_moved && !buffers()->use_device(path.rail, *made.device, true)) return false;
  std::swap(*path.resources, made);
  return true;
}

void SendComm::take_line_keys(const Path& path, const std::optional<wire::LineKeys>& keys) {
  BL_ASSERT(!path.posts, "the keys are there before the path is used");
  if (!keys) return;
  if (late_keys_ == nullptr) late_keys_ = std::make_unique<LateKeys>();
  end_short_path();
  late_keys_->take(path.peer_rail, *keys);
}

wire::SenderReport SendComm::take_report() const noexcept {
  return take_sender_report(credits_.next(),
                            [this](std::uint32_t position) { return credits_.has_come(position); });
}

wire::LineSet SendComm::resume(const Path& path, const wire::ReceiverReport& report) {
  BL_ASSERT(gate_.is_held() && !path.counts, "nothing of the path counts any more");
  for (Request& request : requests_) {
    if (request.count == 0 || request.missing == 0) continue;
    if (request.split != 0) {
      take_back_chunks(path, request, report);
    } else if (request.path == path.index) {
      take_back_message(request, report);
    }
  }
  several_->scheduler.lost(path.index);
  assign_waiting();
  return missing_but_finished(report, finished_before(report.next));
}

// Looks at the last kMaxLines lines before `next`, and returns those that isend has taken in order
// and whose messages have completed.
wire::LineSet SendComm::finished_before(std::uint32_t next) noexcept {
  const std::uint32_t taken = credits_.next();
  wire::LineSet finished;
  for (std::uint32_t i = 1; i <= wire::kMaxLines; ++i) {
    if (wire::is_before(next - i, taken)) finished.add(next - i);
  }
  for (const Request& request : requests_) {
    if (request.count != 0 && request.missing != 0) finished.remove(request.line);
  }
  return finished;
}

const char* SendComm::how_lost(std::uint32_t position) noexcept {
  if (finished_before(position + 1).has(position)) {
    return "the other end's device has acknowledged a message that the receiver lacks";
  }
  const bool is_taken = wire::is_before(position, credits_.next());
  if (is_taken || credits_.has_come(position)) return nullptr;
  return "its device has acknowledged a credit and not written it to memory";
}

// Chunks that the path has lost wait again.
void SendComm::take_back_chunks(const Path& path, Request& request,
                                const wire::ReceiverReport& report) noexcept {
  SplitMessage& message = several_->splits.of(request);
  const wire::ChunkMask carried = std::exchange(message.carried[path.index], 0);
  const wire::ChunkMask lost =
      resolve_chunks(report, {.position = request.line, .chunks = carried}).missing;
  message.announced &= ~lost;
  const std::uint8_t under_way = std::exchange(message.under_way[path.index], std::uint8_t{0});
  request.missing = static_cast<std::uint8_t>(request.missing - under_way);
  if (lost != 0 && message.unsent == 0) {
    ++request.missing;  // for the chunks that wait
    several_->splits.wait_again(message);
  }
  message.unsent |= lost;
  if (request.missing == 0) several_->splits.forget(request);
}

// A message that one path carried is sent again like a split one.
void SendComm::take_back_message(Request& request, const wire::ReceiverReport& report) noexcept {
  const wire::ChunkMask all = wire::all_chunks_of(request.sizes[0]);
  if (resolve_chunks(report, {.position = request.line, .chunks = all}).missing == 0) {
    request.missing = 0;
  } else {
    request.path = kNoPath;
    several_->has_lost_messages = true;
  }
}

bool SendComm::lose_device_of(Path& path) {
  path.is_device_left = true;
  const auto others = static_cast<PathMask>(~(1U << path.index));
  for (Request& request : requests_) {
    if (request.count == 0 || request.missing == 0 || request.split == 0) continue;
    several_->splits.of(request).usable &= others;
  }
  check_stranded();
  return true;
}

// A message whose buffer is registered only with devices that are gone.
void SendComm::check_stranded() {
  if (!has_usable_path()) return;  // whatever comes back first may be able to carry it
  bool is_stranded = false;
  for (Request& request : requests_) {
    if (request.count == 0 || request.missing == 0) continue;
    if (request.split != 0) {
      const SplitMessage& message = several_->splits.of(request);
      is_stranded = is_stranded || (message.usable == 0 && message.unsent != 0);
    } else if (request.path == kNoPath) {
      const PathMask usable = usable_paths(request.line, *request.source().memory);
      is_stranded = is_stranded || usable == 0;
    }
  }
  if (is_stranded) {
    (void)events_.on_fault(*this, Errc::kSystem, "send",
                           "a buffer is registered only with devices that are gone");
  }
}

// There may be too few records for all of them at once.
void SendComm::resend_messages() noexcept {
  several_->has_lost_messages = false;
  for (Request& request : requests_) {
    const bool is_lost =
        request.count != 0 && request.missing != 0 && request.split == 0 && request.path == kNoPath;
    if (!is_lost) continue;
    const SendSource source = request.source();
    const PathMask usable = usable_paths(request.line, *source.memory);
    if (several_->splits.add(request, source.address, *source.memory, usable) != nullptr) continue;
    several_->has_lost_messages = true;
    return;
  }
}

}  // namespace beeline
