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
#include "common/check/assert.h"
#include "plugin/connect/comm/connection.h"
#include "plugin/stats/shared_word.h"

namespace beeline {

// Registers the process with membarrier(2). The registration may sleep for milliseconds. Called at
// init, so that no call of NCCL's sleeps when it makes its first comm (tests/plugin/scale).
void register_membarrier() noexcept;

// Which comms a function is made for.
enum class Paths : std::uint8_t { kOne, kSeveral };

// Threads: each function says which.
class CommGate {
 public:
  // Facts about the comm, and reasons why its calls have to take their slow functions, in one word,
  // so that a call can ask for all of them at once.
  using Word = std::atomic<std::uint32_t>;
  enum Bit : std::uint32_t {
    kReceives = 1,            // it is the receiving end
    kHasSeveralPaths = 2,     // or one that has failed before
    kLinkHasNews = 4,         // the link is not open, or has something to say: set by the link
    kRaised = 8,              // a failure was seen
    kTaken = 16,              // the control thread wants the comm, or has it
    kWithoutMembarrier = 32,  // of this process
    kFlushesInTest = 64,      // RecvComm::flushes_in_test()
    kAsked = 128,             // the control thread wants to know whether calls are made
    kRecounts = 256,          // must_recount()
  };

  CommGate(Role role, bool has_several_paths) noexcept;

  // --- The data thread ---

  // When isend, irecv or iflush begins. is_alarmed() has to be asked after this, not before.
  BL_INLINED void enter() noexcept;
  // When the request is finished, or when the call has made none.
  BL_INLINED void leave() noexcept;
  // Whether the call has to take its slow function: because the link is not open, a failure was
  // seen, or the control thread wants the comm. That reason may be over when the call looks for it.
  BL_INLINED bool is_alarmed() const noexcept {
    return has_any(kLinkHasNews | kRaised | kTaken | kWithoutMembarrier | kAsked);
  }
  // Whether the comm has this role and so many paths, and no bit is set that makes a call take
  // its slow function.
  BL_INLINED bool is_fast(Role role, Paths paths) const noexcept {
    const std::uint32_t of_role = role == Role::kReceive ? std::uint32_t{kReceives} : 0;
    const std::uint32_t of_paths = paths == Paths::kSeveral ? std::uint32_t{kHasSeveralPaths} : 0;
    return word_.load(kOrder) == (of_role | of_paths);
  }
  // A call that finds the comm alarmed says that it was made.
  void answer() noexcept { word_.fetch_and(~std::uint32_t{kAsked}); }
  // Calls in progress and requests that are not finished. Any thread.
  std::uint64_t busy() const noexcept { return shared::load(busy_); }
  // Whether a thread has the comm, which has to be so where paths are changed.
  bool is_held() const noexcept { return busy() != 0 || is_taken(); }
  // Whether no call was made since the control thread has asked. Any thread.
  bool is_asked() const noexcept { return has_any(kAsked); }
  // Whether the control thread has the comm, or is about to. Lasts microseconds.
  bool is_taken() const noexcept {
#ifndef __SANITIZE_THREAD__
    if (has_any(kWithoutMembarrier)) std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    return has_any(kTaken);
  }
  void wait_until_returned() const noexcept;

  // --- Whichever thread has the comm ---

  bool has_several_paths() const noexcept { return has_any(kHasSeveralPaths); }
  void set_has_several_paths() noexcept { word_.fetch_or(kHasSeveralPaths); }
  bool flushes_in_test() const noexcept { return has_any(kFlushesInTest); }
  void set_flushes_in_test() noexcept { word_.fetch_or(kFlushesInTest); }  // any thread
  // Set after a path has failed. While it is set, each poll has to count the receives that are
  // spare.
  bool must_recount() const noexcept { return has_any(kRecounts); }
  void set_must_recount() noexcept {
    BL_ASSERT(has_any(kReceives), "only a receiver has posted receives to count");
    word_.fetch_or(kRecounts);
  }
  void clear_must_recount() noexcept { word_.fetch_and(~std::uint32_t{kRecounts}); }
  // Whether flushes_in_test() or must_recount(), which a receiver asks after each poll: usually
  // neither.
  BL_INLINED bool has_more_after_poll() const noexcept {
    return has_any(kFlushesInTest | kRecounts);
  }
  // From now on is_alarmed().
  void raise_alarm() noexcept { word_.fetch_or(kRaised); }
  // The reason for which the alarm was raised is over. The link may still have one.
  void lower_alarm() noexcept { word_.fetch_and(~std::uint32_t{kRaised}); }
  bool is_raised() const noexcept { return has_any(kRaised); }
  // When the comm is about to be destroyed: the control thread does not get in any more.
  void close() noexcept;
  // For the link.
  Word& word() noexcept { return word_; }

  // --- The control thread ---

  // Succeeds if the comm is idle: no request is outstanding, and no call is in progress. Then the
  // data thread stays out until give_back().
  bool try_take() noexcept;
  void give_back() noexcept;
  // The next call will answer().
  void ask() noexcept { word_.fetch_or(kAsked); }

 private:
// ThreadSanitizer knows neither membarrier nor fences: for it, the order is in the accesses.
#ifdef __SANITIZE_THREAD__
  static constexpr std::memory_order kOrder = std::memory_order_seq_cst;
#else
  static constexpr std::memory_order kOrder = std::memory_order_acquire;
#endif

  BL_INLINED bool has_any(std::uint32_t bits) const noexcept {
    return (word_.load(kOrder) & bits) != 0;
  }

  std::uint64_t busy_ = 0;  // calls in progress and requests that are not finished
  Word word_;
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

}  // namespace beeline
