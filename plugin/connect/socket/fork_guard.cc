// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/socket/fork_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/check/assert.h"

namespace beeline {
namespace {

constexpr int kMostGuarded = 65536;
constexpr int kBits = 64;

// One bit for each descriptor. Atomic words and no mutex, because a fork may happen while another
// thread is in here, and the handler in the child may call async-signal-safe functions only.
constinit std::array<std::atomic<std::uint64_t>, kMostGuarded / kBits> guarded{};
constinit std::atomic<bool> handler_installed{false};

bool is_guarded(int fd) noexcept { return fd >= 0 && fd < kMostGuarded; }
std::atomic<std::uint64_t>& word_of(int fd) noexcept {
  return guarded[static_cast<std::size_t>(fd / kBits)];
}
std::uint64_t bit_of(int fd) noexcept { return std::uint64_t{1} << (fd % kBits); }

void close_in_child() {
  for (std::size_t i = 0; i < guarded.size(); ++i) {
    std::uint64_t bits = guarded[i].exchange(0, std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) {
      ::close(static_cast<int>(i) * kBits + std::countr_zero(bits));
    }
  }
}

}  // namespace

void guard_from_fork(int fd) noexcept {
  if (!is_guarded(fd)) return;
  word_of(fd).fetch_or(bit_of(fd), std::memory_order_relaxed);
  if (!handler_installed.exchange(true)) pthread_atfork(nullptr, nullptr, &close_in_child);
}

void unguard_from_fork(int fd) noexcept {
  BL_ASSERT(::fcntl(fd, F_GETFD) != -1, "a descriptor is unguarded before it is closed");
  if (is_guarded(fd)) word_of(fd).fetch_and(~bit_of(fd), std::memory_order_relaxed);
}

}  // namespace beeline
