// SPDX-License-Identifier: Apache-2.0
//
// The slot of one connection in the statistics page.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/check/assert.h"
#include "plugin/stats/shared_word.h"
#include "plugin/stats/words.h"

namespace beeline {

class SlotTable;

// By which a reader finds the other end of a connection.
struct PeerNumbers {
  std::int64_t pid = 0;      // of the peer
  std::uint32_t ours = 0;    // number of the connection in this process
  std::uint32_t theirs = 0;  // and in the peer's
};

// Lifecycle: SlotTable or StatsPage creates it. Its destructor closes the slot, which stays
// readable until
//   another connection needs it. A default-constructed one can be written to, but is not shown.
// Threads: only the thread that moves the connection's data counts, and sets sizes. Any thread may
//   call the others.
// Cost: an addition or a store to memory for each of those.
class StatsSlot {
 public:
  StatsSlot() noexcept = default;
  StatsSlot(StatsSlot&& other) noexcept
      : slot_(std::exchange(other.slot_, &nowhere)), table_(std::exchange(other.table_, nullptr)) {}
  StatsSlot& operator=(StatsSlot&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~StatsSlot() { close(); }

  // There is only one writer, so that fast functions need no locked instruction.
  void add(Counter counter, std::uint64_t amount = 1) noexcept {
    shared::add(slot_->counters[static_cast<std::uint32_t>(counter)], amount);
  }

  // A receive of one buffer, at this position, was granted.
  void add_grant(std::uint32_t position) noexcept {
    beeline_stats_slot& slot = *slot_;
    set_size_in(slot, position, BEELINE_STATS_UNDER_WAY);
    shared::add(slot.counters[static_cast<std::uint32_t>(Counter::kGrants)], 1);
  }
  void add_messages(std::uint64_t count, std::uint64_t bytes) noexcept {
    count_messages(*slot_, count, bytes);
  }
  // The message at this position of the credit ring.
  void add_message(std::uint32_t position, std::uint32_t bytes) noexcept {
    beeline_stats_slot& slot = *slot_;
    set_size_in(slot, position, bytes);
    count_messages(slot, 1, bytes);
  }
  void record(Event event, std::uint32_t arg = 0, std::uint64_t value = 0,
              std::uint16_t rail = 0) noexcept {
    record_what(beeline_stats_what(static_cast<std::uint16_t>(event), rail, arg), value);
  }

  // Sets the size of the message at this position of the credit ring. BEELINE_STATS_UNDER_WAY says
  // that the message is awaited.
  void set_size(std::uint32_t position, std::uint32_t bytes) noexcept {
    set_size_in(*slot_, position, bytes);
  }
  void set_quiet_since(std::int64_t when_ns) noexcept {
    shared::store(slot_->quiet_since_ns, static_cast<std::uint64_t>(when_ns));
  }

  // Grows whenever either end does anything. For any thread.
  std::uint64_t progress() const noexcept {
    return count(Counter::kMessages) + count(Counter::kCompletions) + count(Counter::kGrants);
  }
  // For the control thread: what the connection waits for and since when, and how many requests are
  // open.
  Wait waits_for() const noexcept { return static_cast<Wait>(shared::load(slot_->waits_for)); }
  void set_wait(Wait what, std::int64_t since_ns, std::uint64_t requests) noexcept {
    shared::store(slot_->requests, requests);
    shared::store(slot_->waits_since_ns, static_cast<std::uint64_t>(since_ns));
    shared::store(slot_->waits_for, static_cast<std::uint32_t>(what), std::memory_order_release);
  }

  // For the control thread, which is the only one to record these.
  void record_look(Event event, std::uint32_t arg, std::uint64_t value, std::int64_t when_ns,
                   std::uint16_t rail = 0) noexcept {
    const std::uint64_t number = shared::load(slot_->looks_claimed);
    shared::store(slot_->looks_claimed, number + 1);
    replace(slot_->looks[number % BEELINE_STATS_LOOKS], when_ns,
            beeline_stats_what(static_cast<std::uint16_t>(event), rail, arg), value);
  }

  // For readers in this process, by shared::load(). Null if the counters of several connections
  // are in one place, because this slot is not shown.
  const std::uint64_t* word_of(Counter counter) const noexcept {
    return is_shown() ? &slot_->counters[static_cast<std::uint32_t>(counter)] : nullptr;
  }

  // Must be called before the state becomes kReady, from which on readers use it.
  void set_peer(std::string_view host, std::string_view device, const PeerNumbers& peer = {},
                const ClockOffset& clock = {}) noexcept {
    shared::store_text(slot_->peer_host, host);
    shared::store_text(slot_->peer_device, device);
    shared::store(slot_->peer_pid, static_cast<std::uint64_t>(peer.pid));
    shared::store(slot_->number, peer.ours);
    shared::store(slot_->peer_number, peer.theirs);
    shared::store(slot_->peer_clock_ns, clock.ahead_ns);
    shared::store(slot_->peer_clock_error_ns, static_cast<std::uint64_t>(clock.error_ns));
  }
  // By which the peer's page is found before anything else is known of the peer.
  void set_peer_identity(std::uint64_t identity) noexcept {
    shared::store(slot_->peer_identity, identity);
  }
  // A path has this device and port of its own, or waits for them.
  void begin_path(std::size_t index, const std::string& device, unsigned port,
                  bool is_up = true) noexcept {
    BL_ASSERT(index < BEELINE_STATS_PATHS, "a slot has a place for each path");
    beeline_stats_path& path = slot_->paths[index];
    store_port(path.own_device, device, port);
    store_port(path.device, device, port);
    set_path_state(index, is_up ? PathHealth::kUp : PathHealth::kDown);
  }
  // The path works again, maybe with another device.
  void restore_path(std::size_t index, const std::string& device, unsigned port) noexcept {
    store_port(slot_->paths[index].device, device, port);
    set_path_state(index, PathHealth::kUp);
    record(Event::kPathUp, 0, 0, static_cast<std::uint16_t>(index));
  }
  void fail_path(std::size_t index) noexcept {
    std::uint32_t& failures = slot_->paths[index].failures;
    shared::store(failures, shared::load(failures) + 1);
    set_path_state(index, PathHealth::kDown);
    record(Event::kPathDown, 0, 0, static_cast<std::uint16_t>(index));
  }
  // The sum over all paths.
  std::uint64_t path_failures() const noexcept {
    std::uint64_t failures = 0;
    for (const beeline_stats_path& path : slot_->paths) failures += shared::load(path.failures);
    return failures;
  }
  void set_path_bytes(std::size_t index, std::uint64_t bytes) noexcept {
    shared::store(slot_->paths[index].bytes, bytes);
  }
  std::uint64_t count(Counter counter) const noexcept {
    return shared::load(slot_->counters[static_cast<std::uint32_t>(counter)]);
  }
  void set_moved(std::int64_t when_ns) noexcept {
    shared::store(slot_->moved_ns, static_cast<std::uint64_t>(when_ns));
  }
  bool has_failed() const noexcept {
    return shared::load(slot_->state) == static_cast<std::uint32_t>(SlotState::kFailed);
  }
  void set_state(SlotState state) noexcept {
    shared::store(slot_->state, static_cast<std::uint32_t>(state), std::memory_order_release);
  }

  // Whether other processes can see it.
  bool is_shown() const noexcept { return table_ != nullptr; }
  void close() noexcept;

 private:
  friend class SlotTable;
  StatsSlot(SlotTable* table, beeline_stats_slot* slot) noexcept : slot_(slot), table_(table) {}

  template <std::size_t N>
  static void store_port(char (&place)[N], const std::string& device, unsigned port) noexcept {
    char text[N];
    std::snprintf(text, sizeof text, "%s:%u", device.c_str(), port);
    shared::store_text(place, text);
  }
  void set_path_state(std::size_t index, PathHealth state) noexcept {
    shared::store(slot_->paths[index].state, static_cast<std::uint32_t>(state),
                  std::memory_order_release);
  }
  static void set_size_in(beeline_stats_slot& slot, std::uint32_t position,
                          std::uint32_t bytes) noexcept {
    // In this order, GCC 12 makes one instruction of it. It makes two of `sizes[position % ...]`.
    const std::size_t at = position % BEELINE_STATS_SIZES * sizeof bytes;
    std::byte* const place = reinterpret_cast<std::byte*>(&slot) + at;
    shared::store(*reinterpret_cast<std::uint32_t*>(place + offsetof(beeline_stats_slot, sizes)),
                  bytes);
  }
  static void count_messages(beeline_stats_slot& slot, std::uint64_t count,
                             std::uint64_t bytes) noexcept {
    shared::add(slot.counters[static_cast<std::uint32_t>(Counter::kMessages)], count);
    shared::add(slot.counters[static_cast<std::uint32_t>(Counter::kBytes)], bytes);
  }

  // Several threads may record events. Each one takes a number first, which is the event's place;
  // readers sort by time. `what` is 0 while the other words change, and a reader that sees any part
  // of the new event also sees that.
  void record_what(std::uint64_t what, std::uint64_t value) noexcept {
    const std::uint64_t number =
        std::atomic_ref(slot_->life_claimed).fetch_add(1, std::memory_order_relaxed);
    replace(slot_->life[number % BEELINE_STATS_LIFE_EVENTS], now_ns(), what, value);
  }

  static void replace(beeline_stats_event& event, std::int64_t time_ns, std::uint64_t what,
                      std::uint64_t value) noexcept {
    shared::store(event.what, 0);
    shared::store(event.time_ns, static_cast<std::uint64_t>(time_ns), std::memory_order_release);
    shared::store(event.value, value, std::memory_order_release);
    shared::store(event.what, what, std::memory_order_release);
  }

  // The target of slots that are not shown, so that fast functions need not test for null.
  alignas(64) static inline constinit beeline_stats_slot nowhere{};

  beeline_stats_slot* slot_ = &nowhere;
  SlotTable* table_ = nullptr;
};

}  // namespace beeline
