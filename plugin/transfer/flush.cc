// SPDX-License-Identifier: Apache-2.0
//
// Flushes of GPU memory: data that a NIC has written to a GPU may still be on its way there when
// its completion is polled.
#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include "plugin/transfer/recv_comm.h"
#include "plugin/verbs/text.h"

namespace beeline {

// The rails of this end through which the data of the newest receive into `data` has come, as far
// as that is known: all of them if it has not come yet, or if its line is not in the ring any more.
std::uint8_t RecvComm::rails_that_carried(std::uint64_t data) const noexcept {
  if (paths().size() == 1) return bit_of_rail(paths().front().rail);
  constexpr std::uint8_t kAll = 0xff;
  for (std::uint32_t back = 1; back <= wire::kMaxLines; ++back) {
    const std::uint32_t position = next_ - back;
    const std::uint32_t place = position % wire::kMaxLines;
    const Owner& owner = owners_[place];
    if (owner.position != position) break;  // there was no such line
    if (lines_[place].address == data) return owner.waits() ? kAll : several_->carried[place];
  }
  return kAll;
}

Errc RecvComm::iflush(std::span<const FlushTarget> targets, void** request) {
  if (targets.empty()) return Errc::kOk;
  gate_.enter();
  if (gate_.is_alarmed()) {
    gate_.wait_until_returned();  // iflush has no way to answer "call again"
    if (const Status status = events_.on_alarm(*this); !status) {
      return leave_with(status.error().code);
    }
  }
  if (flusher_ == nullptr) return leave_with(Errc::kInvalid);  // the memory is another comm's
  if (free_flushes_.empty()) set_flushes_apart();
  if (free_flushes_.empty()) {
    return leave_with(events_.on_fault(*this, Errc::kInternal, "flush GPU memory",
                                       "too many requests are under way"));
  }
  Request& made = free_flushes_.take();
  plan_reads(made.slot, targets);
  const std::uint8_t rails = narrow_plan(made.slot);
  if (flusher_->is_broken(rails)) {
    free_flushes_.give_back(made);
    return leave_with(flush_by_host("the NIC cannot read the GPU memory"));
  }
  made.count = 1;
  made.sizes[0] = 0;
  *request = &made;
  start_reads(made, rails);
  return Errc::kOk;
}

// Moves the free requests that belong to flushes to a list of their own.
void RecvComm::set_flushes_apart() noexcept {
  FreeRequests rest;
  while (!free_requests_.empty()) {
    Request& free = free_requests_.take();
    (free.slot >= kFirstForFlushes ? free_flushes_ : rest).give_back(free);
  }
  free_requests_ = rest;
}

void RecvComm::flush_before_done(void* request, std::span<const FlushTarget> targets) {
  if (targets.empty()) return;
  Request& receive = *static_cast<Request*>(request);
  plan_reads(receive.slot, targets);
  flusher_->delay(receive.slot);
  ++receive.missing;
}

void RecvComm::plan_reads(std::uint16_t request, std::span<const FlushTarget> targets) noexcept {
  std::array<Flusher::Target, wire::kMaxReceives> reads;
  std::size_t count = 0;
  for (const FlushTarget& target : targets) {
    reads[count++] = {.address = reinterpret_cast<std::uint64_t>(target.data),
                      .rkeys = &target.memory->rkeys,
                      .rails = target.memory->rails};
  }
  flusher_->plan(request, {reads.data(), count});
}

std::uint8_t RecvComm::narrow_plan(std::uint16_t request) noexcept {
  return flusher_->narrow(request,
                          [this](std::uint64_t address) { return rails_that_carried(address); });
}

void RecvComm::start_reads(Request& request, std::uint8_t rails) {
  const std::uint8_t failed_before = flusher_->failed_rails();
  request.missing = flusher_->start(request.slot);
  leave_lost_rails();
  if (flusher_->is_broken(rails) || (flusher_->failed_rails() & ~failed_before) != 0) {
    flush_all_by_host("the NIC did not accept a READ of the GPU memory");
  }
}

// Starts the READs of receives whose data has arrived, and which wait for nothing else.
void RecvComm::flush_arrived() {
  flusher_->each_delayed([this](std::uint16_t slot) {
    if (requests_[slot].missing != 1) return false;
    start_reads(requests_[slot], narrow_plan(slot));
    return true;
  });
}

void RecvComm::leave_rail(std::size_t rail) {
  flusher_->leave_rail(rail, [&](std::uint16_t request) { --requests_[request].missing; });
}

// A READ that is refused because its device is gone is not an error: the device has written all
// that it will.
void RecvComm::leave_lost_rails() {
  if (flusher_->failed_rails() == 0) return;
  for (const Path& path : paths()) {
    const bool has_failed = (flusher_->failed_rails() & bit_of_rail(path.rail)) != 0;
    if (has_failed && path.resources.device->context->is_gone()) leave_rail(path.rail);
  }
}

// One READ for each registration that a line in flight names. Which of them are of GPU memory is
// not known here.
std::optional<std::uint8_t> RecvComm::read_back(const Path& path) {
  constexpr std::size_t kMost = 8;
  constexpr std::uint8_t kNeverCompletes = 1;  // the fence waits for as long as it may
  const std::unique_lock lock(preparing_, std::try_to_lock);
  if (!lock) return std::nullopt;
  if (flusher_ == nullptr || flusher_->has_left(path.rail)) return 0;
  const FenceRead fence = {.path = path.index, .generation = path.generation};
  std::array<std::uint32_t, kMost> keys;
  std::uint8_t count = 0;
  for (const Owner& owner : owners_) {
    const wire::CreditLine& line = lines_[owner.position % wire::kMaxLines];
    const std::uint32_t key = line.rkeys[path.rail];
    if (!owner.waits() || line.capacity == 0 || key == 0) continue;
    const auto end = keys.begin() + count;
    if (std::find(keys.begin(), end, key) != end) continue;
    if (count == kMost || !flusher_->read_for_fence(path.rail, line.address, key, fence)) {
      return count + kNeverCompletes;
    }
    keys[count++] = key;
  }
  return count;
}

void RecvComm::on_read_back(const Path& path, const ibv_wc& completion) noexcept {
  flusher_->on_fence_read(path.rail);
  const FenceRead fence = FenceRead::of(completion.wr_id);
  Path& fenced = path_at(fence.path);
  const bool is_awaited =
      !fenced.posts && fenced.generation == fence.generation && fenced.fence_left != 0;
  if (is_awaited && completion.status == IBV_WC_SUCCESS) --fenced.fence_left;
}

void RecvComm::on_flush(const Path& path, const ibv_wc& completion) {
  if (flusher_->has_left(path.rail)) return;
  if (work_id::is_fence_read(completion.wr_id)) return on_read_back(path, completion);
  watch_.moved();
  const std::uint8_t failed_before = flusher_->failed_rails();
  const bool is_read = completion.status == IBV_WC_SUCCESS;
  const std::uint16_t request = work_id::request_of_read(completion.wr_id);
  flusher_->on_completion(path.rail, request, is_read);
  if (flusher_->failed_rails() != failed_before) {
    leave_lost_rails();
    if (flusher_->has_left(path.rail)) {
      --requests_[request].missing;
      return;
    }
    flush_all_by_host(verbs::wc_status_text(completion.status));
  }
  if (is_read || host_flushes_) --requests_[request].missing;
}

// The driver's flush covers all data that has arrived, so no READ is waited for any more.
void RecvComm::flush_all_by_host(const char* why) {
  host_flushes_ = flush_by_host(why) == Errc::kOk;
  if (!host_flushes_) return;
  flusher_->drop_waiting([&](std::uint16_t request) { --requests_[request].missing; });
}

Errc RecvComm::flush_by_host(const char* why) {
  const std::uint64_t owners = flushed_gpus_.load(std::memory_order_acquire);
  const gdr::GpuDirect* const gpus = registration_ == nullptr ? nullptr : registration_->gpus;
  if (gpus != nullptr && gpus->flush_by_host(owners)) return Errc::kOk;
  return events_.on_fault(*this, Errc::kSystem, "make received data visible to the GPU", why);
}

}  // namespace beeline
