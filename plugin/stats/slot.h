// SPDX-License-Identifier: Apache-2.0
//
// The slot of one connection in the statistics page.
#pragma once

#include <cstdint>
#include <ctime>

#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "plugin/stats/shared_word.h"
#include "plugin/stats/words.h"

namespace beeline {

class SlotTable;

// Lifecycle: SlotTable or StatsPage creates it. Its destructor closes the slot, which stays
// readable until
//   another connection needs it. A default-constructed one can be written to, but is not shown.
// Threads: only the thread that moves the connection's data calls add() and records data events.
// Any
//   thread may call the others.
// Cost: add() is an addition to memory. A data event is four stores and a clock that is no system
// call.
class StatsSlot {
 public:
  StatsSlot() noexcept = default;
  StatsSlot(StatsSlot&& other) noexcept
      : table_(std::exchange(other.table_, nullptr)), slot_(std::exchange(other.slot_, &nowhere)) {}
  StatsSlot& operator=(StatsSlot&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~StatsSlot() { close(); }

  // There is only one writer, so that the hot path needs no locked instruction.
  void add(Counter counter, std::uint64_t amount = 1) noexcept {
    shared::add(slot_->counters[static_cast<std::uint32_t>(counter)], amount);
  }

  void add_messages(std::uint64_t count, std::uint64_t bytes) noexcept {
    count_messages(*slot_, count, bytes);
  }
  void add_message(std::uint32_t bytes) noexcept { count_messages(*slot_, 1, bytes); }
  void record(Event event, std::uint32_t arg = 0, std::uint64_t value = 0,
              std::uint16_t rail = 0) noexcept {
    const std::uint64_t what = beeline_stats_what(static_cast<std::uint16_t>(event), rail, arg);
    if (is_data_event(event)) {
      record_data(what, value);
    } else {
      record_life(what, value);
    }
  }

  // For readers in this process, by shared::load(). Null if the counters of several connections
  // are in one place, because this slot is not shown.
  const std::uint64_t* word_of(Counter counter) const noexcept {
    return is_shown() ? &slot_->counters[static_cast<std::uint32_t>(counter)] : nullptr;
  }

  // Must be called before the state becomes kReady, from which on readers use it.
  void set_peer(std::string_view host, std::string_view device) noexcept {
    shared::store_text(slot_->peer_host, host);
    shared::store_text(slot_->peer_device, device);
  }
  void set_state(SlotState state) noexcept {
    shared::store(slot_->state, static_cast<std::uint32_t>(state), std::memory_order_release);
  }

  // Whether other processes can see it.
  bool is_shown() const noexcept { return table_ != nullptr; }
  void close() noexcept;

 private:
  friend class SlotTable;
  StatsSlot(SlotTable* table, beeline_stats_slot* slot) noexcept : table_(table), slot_(slot) {}

  // Exact to some milliseconds. On hosts whose time stamp counter the kernel does not trust, the
  // exact clock is a system call; this one never is.
  static std::int64_t coarse_now_ns() noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);  // cannot fail with this clock
    return now.tv_sec * kNsPerSec + now.tv_nsec;
  }

  // `what` is 0 while the other words change, and a reader that sees any part of the new event also
  // sees that. `what` is cleared before the number is stored: if the process were killed between
  // the two in the other order, the oldest event would be in the place of the newest.
  void record_data(std::uint64_t what, std::uint64_t value) noexcept {
    put_data_event(*slot_, coarse_now_ns(), what, value);
  }
  static void put_data_event(beeline_stats_slot& slot, std::int64_t now, std::uint64_t what,
                             std::uint64_t value) noexcept {
    const std::uint64_t number = shared::load(slot.data_claimed);
    beeline_stats_event& event = slot.data[number % BEELINE_STATS_DATA_EVENTS];
    shared::store(event.what, 0);
    shared::store(slot.data_claimed, number + 1, std::memory_order_release);
    fill(event, now, what, value);
  }

  static void count_messages(beeline_stats_slot& slot, std::uint64_t count,
                             std::uint64_t bytes) noexcept {
    shared::add(slot.counters[static_cast<std::uint32_t>(Counter::kMessages)], count);
    shared::add(slot.counters[static_cast<std::uint32_t>(Counter::kBytes)], bytes);
  }

  // Several threads may record these events. Each one takes a number first, which is its place in
  // the ring; readers sort by time.
  void record_life(std::uint64_t what, std::uint64_t value) noexcept {
    const std::uint64_t number =
        std::atomic_ref(slot_->life_claimed).fetch_add(1, std::memory_order_relaxed);
    beeline_stats_event& event = slot_->life[number % BEELINE_STATS_LIFE_EVENTS];
    shared::store(event.what, 0);
    fill(event, now_ns(), what, value);
  }

  static void fill(beeline_stats_event& event, std::int64_t time_ns, std::uint64_t what,
                   std::uint64_t value) noexcept {
    shared::store(event.time_ns, static_cast<std::uint64_t>(time_ns), std::memory_order_release);
    shared::store(event.value, value, std::memory_order_release);
    shared::store(event.what, what, std::memory_order_release);
  }

  // The target of slots that are not shown, so that the hot path need not test for null.
  alignas(64) static inline constinit beeline_stats_slot nowhere{};

  SlotTable* table_ = nullptr;
  beeline_stats_slot* slot_ = &nowhere;
};

}  // namespace beeline
