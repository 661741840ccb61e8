// SPDX-License-Identifier: Apache-2.0
//
// The statistics of one process: where the page is, and slots for its connections.
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

// Lifecycle: outlives its slots. Its end removes the file. A process that is killed leaves it until
//   a later sweep.
// Threads: acquire() from any.
// After fork() the page is the parent's: a child must not touch a slot, and may drop this object.
class StatsPage {
 public:
  struct Options {
    std::string directory;
    bool shown = true;  // no: nobody else can read it
    std::uint32_t slot_count = 1024;
  };

  // Never fails: if the file cannot be created, the counters are kept where only this process sees
  // them. finding() says which, unless the options ask for that.
  static StatsPage open(const Options& options);
  StatsPage(const StatsPage&) = delete;
  StatsPage& operator=(const StatsPage&) = delete;

  // `device` is the local device's name.
  StatsSlot acquire(SlotRole role, std::string_view device) noexcept {
    return slots_.acquire(role, device);
  }

  // When the process ends: without a failed connection there is nothing to find out from the page.
  void remove_unless_failed() noexcept {
    if (!slots_.has_failed()) memory_.remove_file();
  }

  // Empty when nobody else can read it.
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
