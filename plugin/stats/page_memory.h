// SPDX-License-Identifier: Apache-2.0
//
// The memory of a statistics page: a sparse file that other processes can map, or private memory.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/fd.h"
#include "common/base/result.h"
#include "include/beeline/stats_page.h"

namespace beeline {

// Lifecycle: the destructor unmaps and removes the file. In a forked child, it does not remove the
// file,
//   which is the parent's. The file is locked (flock) as long as a process has it open. That shows
//   the sweep of another container, which cannot use the process id, that its owner is alive.
// Threads: several may call reserve_slot() for different slots.
class PageMemory {
 public:
  static Result<PageMemory> create_file(const std::string& path, std::uint32_t slot_count);
  static Result<PageMemory> create_private(std::uint32_t slot_count);

  PageMemory() noexcept = default;  // no slots
  PageMemory(PageMemory&& other) noexcept;
  PageMemory& operator=(PageMemory&& other) noexcept;
  ~PageMemory();

  // Reserves the memory of a slot. Otherwise, a write to a sparse file on a full file system would
  // kill the process with SIGBUS; containers often have only 64 MiB there.
  Status reserve_slot(std::uint32_t index) const noexcept;

  // Removes the file; the mapping stays valid. Does nothing in a forked child.
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

// The size of the page with all slots in use.
constexpr std::size_t stats_page_bytes(std::uint32_t slot_count) noexcept {
  return BEELINE_STATS_HEADER_BYTES + std::size_t{slot_count} * sizeof(beeline_stats_slot);
}

}  // namespace beeline
