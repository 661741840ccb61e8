// SPDX-License-Identifier: Apache-2.0
//
// All memory of nullverbs, in one range of addresses, so that a program that measures the memory of
// the plugin can tell the pages of this library from the plugin's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace nullverbs {

// A spin lock that is held for a few instructions. It is no pthread lock, since programs count
// those in their threads.
class SpinLock {
 public:
  void lock() noexcept {
    while (held_.exchange(true, std::memory_order_acquire)) __builtin_ia32_pause();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

class Arena {
 public:
  static constexpr std::size_t kReserved = std::size_t{1} << 30;

  static Arena& instance();

  // Returns zeroed memory that is aligned to a cache line. Ends the process when there is none
  // left.
  void* take(std::size_t bytes);
  void give_back(void* memory, std::size_t bytes) noexcept;

  template <class T>
  T* take_array(std::size_t count) {
    // Also of pointers.
    // NOLINTNEXTLINE(bugprone-sizeof-expression)
    return static_cast<T*>(take(count * sizeof(T)));
  }

  const void* base() const noexcept { return base_; }

 private:
  struct Free {
    Free* next;
  };
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kClasses = 1024;  // up to 64 KiB in steps of a line

  Arena();

  SpinLock lock_;
  std::byte* base_;
  std::size_t used_ = 0;
  Free* free_[kClasses] = {};
};

}  // namespace nullverbs
