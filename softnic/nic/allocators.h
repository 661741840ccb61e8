// SPDX-License-Identifier: Apache-2.0
// Allocators for record indices and ring space in this process's own arena. Their state is private
// to the process and not in the arena, so a process that dies leaves nothing to repair.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace softnic {

// Allocates indices 1..count-1 in rotation, so that a freed index is reused as late as possible, as
// NICs do with QPNs.
class IndexAllocator {
 public:
  IndexAllocator(std::uint32_t count, std::uint32_t start)
      : used_(count, false), cursor_(start % count) {}

  std::optional<std::uint32_t> take() {
    const std::lock_guard guard(mutex_);
    const auto count = static_cast<std::uint32_t>(used_.size());
    for (std::uint32_t tried = 0; tried < count; ++tried) {
      cursor_ = cursor_ + 1 < count ? cursor_ + 1 : 1;
      if (used_[cursor_]) continue;
      used_[cursor_] = true;
      return cursor_;
    }
    return std::nullopt;
  }
  void give_back(std::uint32_t index) {
    const std::lock_guard guard(mutex_);
    used_[index] = false;
  }

 private:
  std::mutex mutex_;
  std::vector<bool> used_;
  std::uint32_t cursor_;
};

// First-fit allocator for the arena's ring space. Adjacent free ranges are merged.
class RingAllocator {
 public:
  explicit RingAllocator(std::uint64_t bytes) { free_.emplace(0, bytes); }

  std::optional<std::uint64_t> take(std::uint64_t bytes) {
    bytes = rounded(bytes);
    const std::lock_guard guard(mutex_);
    for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
      if (hole->second < bytes) continue;
      const std::uint64_t offset = hole->first;
      const std::uint64_t rest = hole->second - bytes;
      free_.erase(hole);
      if (rest != 0) free_.emplace(offset + bytes, rest);
      return offset;
    }
    return std::nullopt;
  }
  void give_back(std::uint64_t offset, std::uint64_t bytes) {
    const std::lock_guard guard(mutex_);
    auto hole = free_.emplace(offset, rounded(bytes)).first;
    const auto next = std::next(hole);
    if (next != free_.end() && hole->first + hole->second == next->first) {
      hole->second += next->second;
      free_.erase(next);
    }
    if (hole == free_.begin()) return;
    const auto previous = std::prev(hole);
    if (previous->first + previous->second == hole->first) {
      previous->second += hole->second;
      free_.erase(hole);
    }
  }

 private:
  static std::uint64_t rounded(std::uint64_t bytes) { return (bytes + 63) & ~std::uint64_t{63}; }
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;  // offset -> bytes
};

}  // namespace softnic
