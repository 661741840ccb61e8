// SPDX-License-Identifier: Apache-2.0
//
// Decides whether the data thread or the control thread may touch the paths of a comm. The control
// thread takes an idle comm when the peer has reported a failed path. The data thread pays
// one addition when a call begins and one when its request is finished. It needs no memory barrier,
// because the control thread issues one for all threads with membarrier(2) (decision 0012). If the
// kernel refuses that system call, is_alarmed() is always true, so that each call takes its slow
// path, which contains the barrier.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/base/hot.h"
#include "plugin/connect/comm/link.h"
#include "plugin/stats/shared_word.h"

namespace beeline {

// Registers the process with membarrier(2). The registration may sleep for milliseconds. Called at
// init, so that no call of NCCL's sleeps when it makes its first comm (tests/scale).
void register_membarrier() noexcept;

// Threads: each function says which.
class CommGate {
 public:
  using Alarm = std::atomic<Link::State>;

  explicit CommGate(const Alarm& link_state) noexcept;

  // --- The data thread ---

  // When isend, irecv or iflush begins. is_alarmed() has to be asked after this, not before.
  BL_INLINED void enter() noexcept;
  // When the request is finished, or when the call has made none.
  BL_INLINED void leave() noexcept;
  // Whether the call has to take its slow path: because the link is not open, a failure was seen,
  // or the control thread wants the comm. One word answers all of it. May be true for no reason.
  BL_INLINED bool is_alarmed() const noexcept;
  // Whether the control thread has the comm, or is about to. Lasts microseconds.
  bool is_taken() const noexcept {
#ifndef __SANITIZE_THREAD__
    if (fences_itself_) std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    return alarm_.load(kOrder) == &kTaken;
  }
  void wait_until_returned() const noexcept;
  // --- Whichever thread has the comm ---

  // From now on is_alarmed().
  void raise_alarm() noexcept;
  // The reason for which the alarm was raised is over. The link may still have one.
  void lower_alarm() noexcept;
  bool is_raised() const noexcept { return alarm_.load(std::memory_order_acquire) == &kRaised; }
  // When the comm is about to be destroyed: the control thread does not get in any more.
  void close() noexcept;

  // --- The control thread ---

  // Succeeds if the comm is idle: no request is outstanding, and no call is in progress. Then the
  // data thread stays out until give_back().
  bool try_take() noexcept;
  void give_back() noexcept;

 private:
// ThreadSanitizer knows neither membarrier nor fences: for it, the order is in the accesses.
#ifdef __SANITIZE_THREAD__
  static constexpr std::memory_order kOrder = std::memory_order_seq_cst;
#else
  static constexpr std::memory_order kOrder = std::memory_order_acquire;
#endif
  static constexpr Alarm kRaised{Link::State::kDead};
  static constexpr Alarm kTaken{Link::State::kDead};
  static constexpr Alarm kAlways{Link::State::kDead};

  void return_to(const Alarm* before) noexcept;

  std::uint64_t busy_ = 0;  // calls in progress and requests that are not finished
  std::atomic<const Alarm*> alarm_;
  const Alarm* const usual_;       // alarm_, unless something is the matter
  const bool fences_itself_;       // the kernel has no membarrier(2) for this process
  const Alarm* before_ = nullptr;  // what alarm_ will be when the control thread gives back
  bool is_held_ = false;           // by the control thread
};

BL_INLINED void CommGate::enter() noexcept {
#ifdef __SANITIZE_THREAD__
  std::atomic_ref(busy_).fetch_add(1, std::memory_order_seq_cst);
#else
  shared::add(busy_, 1);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler keeps the order
#endif
}

BL_INLINED void CommGate::leave() noexcept {
#ifdef __SANITIZE_THREAD__
  std::atomic_ref(busy_).fetch_sub(1, std::memory_order_release);
#else
  std::atomic_thread_fence(std::memory_order_release);
  shared::add(busy_, ~std::uint64_t{0});
#endif
}

BL_INLINED bool CommGate::is_alarmed() const noexcept {
  return alarm_.load(kOrder)->load(std::memory_order_acquire) != Link::State::kOpen;
}

}  // namespace beeline
