// SPDX-License-Identifier: Apache-2.0
//
// Page-aligned memory between two guards, in which a byte written beside the buffer shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace beeline::perf {

class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t size);

  std::uint8_t* data() const noexcept;
  size_t size() const noexcept { return size_; }
  void poison() const noexcept;
  // With the guards.
  std::uint8_t* whole() const noexcept { return memory_.get(); }
  size_t whole_size() const noexcept { return total_; }
  // Stays allocated until the process ends, whatever becomes of this object.
  void keep();
  // How many bytes of the guards are not what they were.
  size_t broken_guards() const noexcept;

 private:
  struct Free {
    void operator()(std::uint8_t* memory) const noexcept;
  };

  size_t size_;
  size_t total_;
  std::unique_ptr<std::uint8_t, Free> memory_;
};

size_t host_page() noexcept;

// What a buffer holds before a receive. A byte that still has this value was likely never written.
inline constexpr std::uint8_t kPoison = 0xDB;

}  // namespace beeline::perf
