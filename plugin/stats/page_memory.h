// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a statistics page: a sparse file that others can map, or memory of our own.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/fd.h"
#include "common/base/result.h"
#include "include/beeline/stats_page.h"

namespace beeline {

// Lifecycle: its end unmaps, and removes the file; but in a forked child the file is the parent's
//   and stays. It is locked (flock) as long as a process has it open, which tells the sweep of
//   another container, whose process ids mean something else, that its owner lives.
// Threads: back() may be called from several, for different ranges.
class PageMemory {
 public:
  static Result<PageMemory> create_file(const std::string& path, std::uint32_t slot_count);
  static Result<PageMemory> create_private(std::uint32_t slot_count);

  PageMemory() noexcept = default;  // no slots
  PageMemory(PageMemory&& other) noexcept;
  PageMemory& operator=(PageMemory&& other) noexcept;
  ~PageMemory();

  // Makes sure of the memory behind a slot. A write to a sparse file on a full file system would
  // otherwise kill the process with SIGBUS; containers often have no more than 64 MiB there.
  Status back_slot(std::uint32_t index) const noexcept;

  // Removes the file; the mapping can still be used. Does nothing in a forked child.
  void remove_file() noexcept;

  std::uint32_t slot_count() const noexcept { return slot_count_; }
  beeline_stats_header* header() const noexcept;  // null without slots
  beeline_stats_slot* slot(std::uint32_t index) const noexcept;
  const std::string& path() const noexcept { return path_; }  // empty: private

 private:
  PageMemory(UniqueFd fd, void* start, std::uint32_t slot_count, std::string path) noexcept;
  static Result<PageMemory> map(UniqueFd fd, std::uint32_t slot_count, const std::string& path);

  UniqueFd fd_;
  void* start_ = nullptr;
  std::uint32_t slot_count_ = 0;
  std::string path_;
  pid_t owner_ = 0;
};

// What the page takes, all slots used.
constexpr std::size_t stats_page_bytes(std::uint32_t slot_count) noexcept {
  return BEELINE_STATS_HEADER_BYTES + std::size_t{slot_count} * sizeof(beeline_stats_slot);
}

}  // namespace beeline
