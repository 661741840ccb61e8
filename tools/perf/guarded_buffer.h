// SPDX-License-Identifier: Apache-2.0
//
// Page-aligned memory between two guards, which reveal bytes that were written outside the buffer.
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
  // Including the guards.
  std::uint8_t* whole() const noexcept { return memory_.get(); }
  size_t whole_size() const noexcept { return total_; }
  // The memory then stays allocated until the process ends, even if this object is destroyed.
  void keep();
  // The number of guard bytes that have been overwritten.
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

// The value of each byte of a buffer before a receive. A byte that still has it was probably never
// written.
inline constexpr std::uint8_t kPoison = 0xDB;

}  // namespace beeline::perf
