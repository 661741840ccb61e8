// SPDX-License-Identifier: Apache-2.0
#include "tests/support/nullverbs/arena.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace nullverbs {
namespace {

constexpr std::size_t lines_of(std::size_t bytes) noexcept { return (bytes + 63) / 64; }

}  // namespace

// Never destroyed: programs destroy their last objects while they exit.
Arena& Arena::instance() {
  static Arena& arena = *new Arena;
  return arena;
}

Arena::Arena() {
  void* const memory = ::mmap(nullptr, kReserved, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("nullverbs: no memory");
    std::abort();
  }
  // Huge pages would count unused memory as used.
  ::madvise(memory, kReserved, MADV_NOHUGEPAGE);
  base_ = static_cast<std::byte*>(memory);
}

void* Arena::take(std::size_t bytes) {
  const std::size_t lines = lines_of(bytes);
  const std::lock_guard lock(lock_);
  if (lines < kClasses && free_[lines] != nullptr) {
    Free* const found = free_[lines];
    free_[lines] = found->next;
    return std::memset(static_cast<void*>(found), 0, lines * kLine);
  }
  if (used_ + lines * kLine > kReserved) {
    std::fputs("nullverbs: more objects than it has room for\n", stderr);
    std::abort();
  }
  void* const fresh = base_ + used_;
  used_ += lines * kLine;
  return fresh;
}

void Arena::give_back(void* memory, std::size_t bytes) noexcept {
  const std::size_t lines = lines_of(bytes);
  if (memory == nullptr || lines >= kClasses) return;
  const std::lock_guard lock(lock_);
  free_[lines] = new (memory) Free{free_[lines]};
}

}  // namespace nullverbs
