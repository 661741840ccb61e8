// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/comm_gate.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "common/check/assert.h"

namespace beeline {
namespace {

long membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0); }

// Registered once for the process: older kernels and some sandboxes refuse. Not a static whose
// initialization others wait for: in a child of fork() they would wait for ever.
bool can_fence_others() noexcept {
  enum Answer : std::uint8_t { kNotAsked, kYes, kNo };
  static constinit std::atomic<Answer> registered{kNotAsked};
  if (registered.load(std::memory_order_relaxed) == kNotAsked) {
    const bool is_done = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    registered.store(is_done ? kYes : kNo, std::memory_order_relaxed);
  }
  return registered.load(std::memory_order_relaxed) == kYes;
}

}  // namespace

void register_membarrier() noexcept { static_cast<void>(can_fence_others()); }

CommGate::CommGate(Role role, bool has_several_paths) noexcept
    : word_((role == Role::kReceive ? kReceives : 0U) |
            (has_several_paths ? kHasSeveralPaths : 0U) |
            (can_fence_others() ? 0U : kWithoutMembarrier)) {}

// The data thread adds to busy_ and then reads the word; this writes the word and then reads busy_.
// With a full barrier between the two steps of each, at least one sees the other.
bool CommGate::try_take() noexcept {
  if (shared::load(busy_, std::memory_order_acquire) != 0) return false;
  if ((word_.fetch_or(kTaken) & kTaken) != 0) return false;
#ifndef __SANITIZE_THREAD__
  if (has_any(kWithoutMembarrier)) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
    give_back();
    return false;
  }
#endif
  if (shared::load(busy_, kOrder) == 0) return true;
  give_back();
  return false;
}

void CommGate::give_back() noexcept {
  const std::uint32_t before = word_.fetch_and(~std::uint32_t{kTaken});
  BL_ASSERT((before & kTaken) != 0, "the control thread gives back what it has");
}

void CommGate::wait_until_returned() const noexcept {
  while (is_taken()) ::sched_yield();
}

void CommGate::close() noexcept {
  enter();
  wait_until_returned();
}

}  // namespace beeline
