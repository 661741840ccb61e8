// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/comm_gate.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace beeline {
namespace {

long membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0); }

// Registered once for the process: older kernels and some sandboxes refuse.
bool can_fence_others() noexcept {
  static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  return registered;
}

}  // namespace

void register_membarrier() noexcept { static_cast<void>(can_fence_others()); }

CommGate::CommGate(const Alarm& link_state) noexcept
    : alarm_(can_fence_others() ? &link_state : &kAlways),
      usual_(alarm_),
      fences_itself_(!can_fence_others()) {}

// The data thread adds to busy_ and then reads the alarm; this writes the alarm and then reads
// busy_. With a full barrier between the two steps of each, at least one sees the other.
bool CommGate::try_take() noexcept {
  if (shared::load(busy_, std::memory_order_acquire) != 0) return false;
  const Alarm* before = alarm_.load(std::memory_order_acquire);
  if (before == &kTaken) return false;
  if (!alarm_.compare_exchange_strong(before, &kTaken, std::memory_order_seq_cst)) return false;
#ifndef __SANITIZE_THREAD__
  if (fences_itself_) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
    return_to(before);
    return false;
  }
#endif
  // A call that was in progress may have raised the alarm and ended since: then the comm does not
  // look taken to the next call.
  if (shared::load(busy_, kOrder) != 0 || alarm_.load(kOrder) != &kTaken) {
    return_to(before);
    return false;
  }
  before_ = before;
  is_held_ = true;
  return true;
}

void CommGate::give_back() noexcept {
  is_held_ = false;
  return_to(before_);
}

// While the control thread has the comm, alarm_ says so.
void CommGate::raise_alarm() noexcept {
  if (is_held_) {
    before_ = &kRaised;
  } else {
    alarm_.store(&kRaised, std::memory_order_release);
  }
}

// An alarm that the data thread has raised meanwhile stays.
void CommGate::return_to(const Alarm* before) noexcept {
  const Alarm* expected = &kTaken;
  alarm_.compare_exchange_strong(expected, before, std::memory_order_release,
                                 std::memory_order_relaxed);
}

void CommGate::lower_alarm() noexcept {
  if (is_held_) {
    if (before_ == &kRaised) before_ = usual_;
    return;
  }
  const Alarm* expected = &kRaised;
  alarm_.compare_exchange_strong(expected, usual_, std::memory_order_release,
                                 std::memory_order_relaxed);
}

void CommGate::wait_until_returned() const noexcept {
  while (is_taken()) ::sched_yield();
}

void CommGate::close() noexcept {
  enter();
  wait_until_returned();
}

}  // namespace beeline
