// SPDX-License-Identifier: Apache-2.0
//
// Keeps track of the free slots of a page. This data is not in the page, so that another process
// that can write to the page cannot corrupt it.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "plugin/stats/page_memory.h"
#include "plugin/stats/slot.h"

namespace beeline {

// Lifecycle: outlives its slots; the memory outlives it. Threads: any.
class SlotTable {
 public:
  explicit SlotTable(const PageMemory& memory) : memory_(memory), closed_(memory.slot_count()) {}

  // Returns a slot that was never used, so that closed ones stay readable; otherwise the one that
  // was closed first. If there is none or no memory for it, returns an empty slot, which is not
  // shown.
  StatsSlot acquire(SlotRole role, std::string_view device) noexcept;

  // Whether any connection has failed.
  bool has_failed() const noexcept;

 private:
  friend class StatsSlot;

  std::optional<std::uint32_t> take_locked() noexcept;
  void release(beeline_stats_slot* slot) noexcept;

  const PageMemory& memory_;
  mutable std::mutex mutex_;
  bool closed_one_failed_ = false;
  std::uint64_t next_id_ = 1;
  std::uint32_t used_ = 0;  // slots that were ever used
  // A queue of closed slots.
  std::vector<std::uint32_t> closed_;
  std::uint64_t closed_in_ = 0;
  std::uint64_t closed_out_ = 0;
};

}  // namespace beeline
