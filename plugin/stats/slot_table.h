// SPDX-License-Identifier: Apache-2.0
//
// Which slots of a page are free. That is kept beside the page, not in it: whoever can write to the
// page cannot lead us astray.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "plugin/stats/page_memory.h"
#include "plugin/stats/slot.h"

namespace beeline {

// Lifecycle: outlives the slots it gave out, and is outlived by the memory. Threads: any.
class SlotTable {
 public:
  explicit SlotTable(const PageMemory& memory) : memory_(memory), closed_(memory.slot_count()) {}
  SlotTable(const SlotTable&) = delete;
  SlotTable& operator=(const SlotTable&) = delete;

  // Fresh slots first: they keep what ended readable. Then the one that was closed longest ago.
  // None left, or no memory for it: an empty slot, which nobody sees.
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
  std::uint32_t used_ = 0;  // slots that have ever been given out
  // A queue of closed slots. It never overflows: a slot stands in it at most once.
  std::vector<std::uint32_t> closed_;
  std::uint64_t closed_in_ = 0;
  std::uint64_t closed_out_ = 0;
};

}  // namespace beeline
