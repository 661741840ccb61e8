// SPDX-License-Identifier: Apache-2.0
#include "plugin/stats/slot_table.h"

#include "common/check/assert.h"

namespace beeline {
namespace {

// Clears the slot while its generation is odd. Each store is a release, so that a reader that sees
// any part of the new connection also sees that the generation has changed.
void begin(beeline_stats_slot& slot, std::uint64_t id, SlotRole role, std::string_view device) {
  using shared::store;
  constexpr auto kRelease = std::memory_order_release;
  const std::uint32_t generation = shared::load(slot.generation);
  store(slot.generation, generation + 1);
  store(slot.state, static_cast<std::uint32_t>(SlotState::kFree), kRelease);
  for (std::uint64_t& counter : slot.counters) store(counter, 0, kRelease);
  for (beeline_stats_event& event : slot.life) store(event.what, 0, kRelease);
  for (beeline_stats_event& event : slot.looks) store(event.what, 0, kRelease);
  for (std::uint32_t& size : slot.sizes) store(size, 0, kRelease);
  const auto clear = [](auto&... words) { (store(words, 0, kRelease), ...); };
  clear(slot.life_claimed, slot.looks_claimed, slot.peer_clock_ns, slot.peer_clock_error_ns,
        slot.quiet_since_ns, slot.waits_for, slot.waits_since_ns, slot.requests, slot.moved_ns);
  for (beeline_stats_path& path : slot.paths) {
    clear(path.state, path.bytes, path.failures);
    shared::store_text(path.device, {});
    shared::store_text(path.own_device, {});
  }
  clear(slot.peer_pid, slot.number, slot.peer_number, slot.peer_identity, slot.closed_ns);
  store(slot.opened_ns, static_cast<std::uint64_t>(now_ns()), kRelease);
  store(slot.id, id, kRelease);
  store(slot.role, static_cast<std::uint32_t>(role), kRelease);
  shared::store_text(slot.device, device);
  shared::store_text(slot.peer_host, {});
  shared::store_text(slot.peer_device, {});
  store(slot.state, static_cast<std::uint32_t>(SlotState::kConnecting), kRelease);
  store(slot.generation, generation + 2, kRelease);
}

bool is_failed(const beeline_stats_slot& slot) noexcept {
  return shared::load(slot.state) == static_cast<std::uint32_t>(SlotState::kFailed);
}

}  // namespace

StatsSlot SlotTable::acquire(SlotRole role, std::string_view device) noexcept {
  const std::lock_guard lock(mutex_);
  const std::optional<std::uint32_t> index = take_locked();
  if (!index) return {};
  beeline_stats_slot* slot = memory_.slot(*index);
  begin(*slot, next_id_++, role, device);
  return {this, slot};
}

std::optional<std::uint32_t> SlotTable::take_locked() noexcept {
  beeline_stats_header* header = memory_.header();
  if (used_ < memory_.slot_count() && memory_.reserve_slot(used_)) {
    shared::store(header->slots_used, used_ + 1, std::memory_order_release);
    return used_++;
  }
  if (closed_out_ < closed_in_) return closed_[closed_out_++ % closed_.size()];
  if (header != nullptr) {
    shared::store(header->slots_refused, shared::load(header->slots_refused) + 1);
  }
  return std::nullopt;
}

bool SlotTable::has_failed() const noexcept {
  const std::lock_guard lock(mutex_);
  if (closed_one_failed_) return true;
  for (std::uint32_t i = 0; i < used_; ++i) {
    if (is_failed(*memory_.slot(i))) return true;
  }
  return false;
}

void SlotTable::release(beeline_stats_slot* slot) noexcept {
  const std::lock_guard lock(mutex_);
  shared::store(slot->waits_for, static_cast<std::uint32_t>(Wait::kNothing));
  shared::store(slot->closed_ns, static_cast<std::uint64_t>(now_ns()), std::memory_order_release);
  if (is_failed(*slot)) {
    closed_one_failed_ = true;  // its state stays: that it was closed later tells nothing
  } else {
    shared::store(slot->state, static_cast<std::uint32_t>(SlotState::kClosed),
                  std::memory_order_release);
  }
  const auto index = static_cast<std::uint32_t>(slot - memory_.slot(0));
  BL_ASSERT(index < used_ && closed_in_ - closed_out_ < used_, "a slot is closed once");
  closed_[closed_in_++ % closed_.size()] = index;
}

void StatsSlot::close() noexcept {
  if (table_ == nullptr) return;
  table_->release(slot_);
  table_ = nullptr;
  slot_ = &nowhere;
}

}  // namespace beeline
