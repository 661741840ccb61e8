// SPDX-License-Identifier: Apache-2.0
//
// The statistics page of this process, which has a slot for each connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/finding.h"
#include "plugin/stats/page_memory.h"
#include "plugin/stats/slot.h"
#include "plugin/stats/slot_table.h"

namespace beeline {

// Lifecycle: outlives its slots. Its destructor removes the file. If the process is killed, a later
// sweep
//   removes it.
// Threads: any thread may call acquire().
// After fork() the page is the parent's: a child must not use a slot, but may destroy this object.
class StatsPage {
 public:
  struct Options {
    std::string directory;
    std::string build = {};  // of the plugin, for people
    bool shown = true;       // false: other processes cannot read it
    std::uint32_t slot_count = BEELINE_STATS_MOST_SLOTS;
    std::optional<std::uint32_t> rank = {};   // of this process in its job
    std::optional<std::uint32_t> ranks = {};  // of the job
    std::string job = {};                     // its name; empty: not known
  };

  // Never fails: if the file cannot be created, the counters are kept where only this process sees
  // them. finding() says which, unless the options ask for that.
  static StatsPage open(const Options& options);

  // `device` is the local device's name.
  StatsSlot acquire(SlotRole role, std::string_view device) noexcept {
    return slots_.acquire(role, device);
  }

  // By which the peers of this process know it. For any thread.
  void set_identity(std::uint64_t identity) noexcept {
    if (memory_.header() != nullptr) shared::store(memory_.header()->identity, identity);
  }

  // The process runs at this moment. For any thread.
  void set_alive(std::int64_t now_ns) noexcept {
    if (memory_.header() != nullptr)
      shared::store(memory_.header()->alive_ns, static_cast<std::uint64_t>(now_ns));
  }

  // For the end of the process. The page of a process with a failed connection stays, to be
  // examined.
  void remove_unless_failed() noexcept {
    if (!slots_.has_failed()) memory_.remove_file();
  }

  // Empty if other processes cannot read it.
  const std::string& path() const noexcept { return memory_.path(); }

  // The id is stats-page, or stats-page-failed.
  const std::optional<Finding>& finding() const noexcept { return finding_; }

 private:
  StatsPage(PageMemory memory, std::optional<Finding> finding)
      : memory_(std::move(memory)), slots_(memory_), finding_(std::move(finding)) {}

  PageMemory memory_;
  SlotTable slots_;
  std::optional<Finding> finding_;
};

}  // namespace beeline
