// SPDX-License-Identifier: Apache-2.0
//
// Counts what the calling thread asks of the C library that may wait or allocate. The program that
// links this defines the functions itself, before the C library does, so that every library in the
// process calls ours.
#pragma once

#include <cstdint>

namespace beeline::test {

struct Asked {
  std::uint64_t heap = 0;    // malloc and its kin, free too
  std::uint64_t maps = 0;    // mmap and its kin
  std::uint64_t locks = 0;   // mutexes, condition variables and their kin; releasing them too
  std::uint64_t direct = 0;  // syscall(), which is how futexes are called

  std::uint64_t all() const noexcept { return heap + maps + locks + direct; }
};

// Of this thread, since it began.
Asked asked() noexcept;
Asked operator-(const Asked& now, const Asked& then) noexcept;

}  // namespace beeline::test
