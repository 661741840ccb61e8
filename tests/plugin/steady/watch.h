// SPDX-License-Identifier: Apache-2.0
//
// Counts the calling thread's calls of C library functions that may wait or allocate. A program
// that links this replaces these functions for all libraries of the process.
#pragma once

#include <cstdint>

namespace beeline::test {

struct Asked {
  std::uint64_t heap = 0;    // malloc, free and similar functions
  std::uint64_t maps = 0;    // mmap and similar functions
  std::uint64_t locks = 0;   // mutexes, condition variables and similar, also releasing them
  std::uint64_t direct = 0;  // syscall(), which is how futexes are called

  std::uint64_t all() const noexcept { return heap + maps + locks + direct; }
};

// The counts of this thread since it started.
Asked asked() noexcept;
Asked operator-(const Asked& now, const Asked& then) noexcept;

}  // namespace beeline::test
