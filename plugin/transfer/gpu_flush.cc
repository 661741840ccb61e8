// SPDX-License-Identifier: Apache-2.0
//
// The READs of flushes, from their plan to their completions.
#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "plugin/repair/times.h"
#include "plugin/transfer/gpu_flush.h"
#include "plugin/transfer/path_failure.h"
#include "plugin/verbs/text.h"

namespace beeline {
namespace {

constexpr const char* kDoing = "make received data visible to the GPU";

}  // namespace

GpuFlush::GpuFlush(const Parts& parts, const CommOptions& options) noexcept
    : comm_(parts.comm),
      lines_(parts.lines),
      requests_(parts.requests),
      gid_(options.gid),
      pkey_(options.pkey) {}

bool GpuFlush::begin(Request& request, std::span<const FlushTarget> targets, std::uint32_t next,
                     Errc* code) {
  plan(request, targets);
  const std::uint8_t rails = narrow_plan(request, next);
  if (flusher_->is_broken(rails)) {
    const bool is_flushed = flush_by_host();
    if (is_flushed || !flusher_->has_loopbacks(rails)) {
      *code = is_flushed ? Errc::kOk
                         : comm_.events().on_fault(comm_, Errc::kSystem, kDoing,
                                                   "neither the NIC nor the CUDA driver can");
      return false;
    }
  }
  start(request);
  return true;
}

void GpuFlush::begin_later(Request& receive, std::span<const FlushTarget> targets) noexcept {
  plan(receive, targets);
  flusher_->delay(receive.slot);
  ++receive.missing;
}

void GpuFlush::plan(const Request& request, std::span<const FlushTarget> targets) noexcept {
  std::array<Flusher::Target, wire::kMaxReceives> reads;
  std::size_t count = 0;
  for (const FlushTarget& target : targets) {
    reads[count++] = {.address = reinterpret_cast<std::uint64_t>(target.data),
                      .rkeys = &target.memory->rkeys,
                      .rails = target.memory->rails};
  }
  flusher_->plan(request.slot, {reads.data(), count});
}

std::uint8_t GpuFlush::narrow_plan(const Request& request, std::uint32_t next) noexcept {
  return flusher_->narrow(request.slot, [&](std::uint64_t address) {
    return paths().size() == 1 ? bit_of(paths().front()) : lines_.rails_that_carried(address, next);
  });
}

void GpuFlush::start(Request& request) {
  const std::uint8_t failed_before = flusher_->failed_rails();
  request.missing = flusher_->start(request.slot);
  leave_lost_rails();
  if (!flusher_->waits() || waits_only_for_room() || drop_if_host_flushes()) return;
  comm_.gate().raise_alarm();  // until settle() has nothing left
  for (Path& path : paths()) {
    const bool is_refused = (flusher_->failed_rails() & ~failed_before & bit_of(path)) != 0;
    if (is_refused && path.posts && path.resources->queues.loopback) {
      (void)comm_.events().on_refused(comm_, path, flusher_->refusal(), "flush GPU memory");
    }
  }
}

bool GpuFlush::waits_only_for_room() const noexcept {
  return std::ranges::none_of(paths(), [&](const Path& path) {
    return flusher_->is_broken(bit_of(path)) && flusher_->waits_for(path.rail);
  });
}

// Starts the READs of receives whose data has arrived, and which wait for nothing else.
void GpuFlush::start_arrived(std::uint32_t next) {
  flusher_->each_delayed([&](std::uint16_t slot) {
    if (requests_[slot].missing != 1) return false;
    narrow_plan(requests_[slot], next);
    start(requests_[slot]);
    return true;
  });
}

void GpuFlush::leave_rail(std::size_t rail) {
  flusher_->leave_rail(rail, [&](std::uint16_t request) { --requests_[request].missing; });
}

// A READ that is refused because its device is gone is not an error: the device has written all
// that it will.
void GpuFlush::leave_lost_rails() {
  if (flusher_->failed_rails() == 0) return;
  for (const Path& path : paths()) {
    const bool has_failed = (flusher_->failed_rails() & bit_of(path)) != 0;
    if (has_failed && path.rail_device->context->is_gone()) leave_rail(path.rail);
  }
}

// One READ for each buffer, because data that has arrived may wait for a flush that NCCL has not
// asked for yet. When they have completed, all that the path has brought is visible.
std::optional<std::uint8_t> GpuFlush::read_back(const Path& path) {
  constexpr std::uint8_t kNeverCompletes = 1;  // the fence waits for as long as it may
  const std::unique_lock lock(preparing_, std::try_to_lock);
  if (!lock) return std::nullopt;
  if (flusher_ == nullptr || flusher_->has_left(path.rail)) return 0;
  const FenceRead fence = {.path = path.index, .generation = path.generation};
  std::uint8_t count = 0;
  bool is_complete = true;
  const auto read = [&](std::uint64_t address, std::uint32_t key) {
    is_complete = is_complete && flusher_->read_for_fence(path.rail, address, key, fence);
    if (is_complete) ++count;
  };
  if (!comm_.buffers()->each_to_flush(path.rail, read)) return std::nullopt;
  if (is_complete) return count;
  return flush_by_host() ? std::uint8_t{0} : static_cast<std::uint8_t>(count + kNeverCompletes);
}

void GpuFlush::on_read_back(const Path& path, const ibv_wc& completion) noexcept {
  flusher_->on_fence_read(path.rail);
  const FenceRead fence = FenceRead::of(completion.wr_id);
  Path& fenced = paths()[fence.path];
  const bool is_awaited =
      !fenced.posts && fenced.generation == fence.generation && fenced.fence_left != 0;
  if (is_awaited && completion.status == IBV_WC_SUCCESS) --fenced.fence_left;
}

void GpuFlush::on_completion(const Path& path, const ibv_wc& completion) {
  if (flusher_->has_left(path.rail)) return;
  if (work_id::is_fence_read(completion.wr_id)) return on_read_back(path, completion);
  const std::uint16_t request = work_id::request_of_read(completion.wr_id);
  const bool is_read = completion.status == IBV_WC_SUCCESS;
  flusher_->on_completion(path.rail, request, is_read);
  if (is_read) {
    flusher_->failures_in_a_row(path.rail) = 0;
    --requests_[request].missing;
    return;
  }
  leave_lost_rails();
  if (flusher_->has_left(path.rail) || drop_if_host_flushes()) return;
  comm_.gate().raise_alarm();  // until settle() has nothing left
  if (!path.posts) return;     // it gets a new loopback with its new queue pair
  if (!is_path_failure(completion.status) ||
      ++flusher_->failures_in_a_row(path.rail) == kMostFailures) {
    const std::string why = "a READ of it by " + path.resources->device->ibdev +
                            " failed: " + verbs::wc_status_text(completion.status);
    (void)comm_.events().on_fault(comm_, Errc::kSystem, kDoing, why);
    return;
  }
  comm_.events().on_failed_request(comm_, path, completion, "flush");
}

// The driver's flush covers all data that has arrived, so no READ is waited for any more.
bool GpuFlush::drop_if_host_flushes() {
  if (!flush_by_host()) return false;
  flusher_->drop_waiting(UINT8_MAX, [&](std::uint16_t request) { --requests_[request].missing; });
  return true;
}

bool GpuFlush::flush_by_host() {
  const std::uint64_t owners = flushed_gpus_.load(std::memory_order_acquire);
  const gdr::GpuDirect* const gpus = comm_.gpus();
  if (gpus == nullptr || !gpus->flush_by_host(owners)) return false;
  if (flusher_->failed_rails() != 0 && !std::exchange(says_by_host_, true)) {
    BL_INFO(kLogNet, "%s: the CUDA driver flushes GPU memory until the NIC can again",
            comm_.name_for_log(0).c_str());
  }
  return true;
}

bool GpuFlush::settle() {
  if (flusher_ == nullptr || !flusher_->waits()) return false;
  bool waits = false;
  for (const Path& path : paths()) {
    if (!flusher_->is_broken(bit_of(path)) || !flusher_->waits_for(path.rail)) continue;
    if (!is_settled(path.rail)) {
      waits = true;
      continue;
    }
    flusher_->drop_waiting(bit_of(path), [&](std::uint16_t slot) { --requests_[slot].missing; });
  }
  return waits;
}

bool GpuFlush::is_settled(std::size_t rail) const noexcept {
  const std::int64_t now = now_ns();
  return std::ranges::all_of(paths(), [&](const Path& path) {
    return path.rail != rail || (!path.counts && now >= path.visible_ns);
  });
}

}  // namespace beeline
