// SPDX-License-Identifier: Apache-2.0
// An atomic word in shared memory. In a test build every store is a kill point: the process can be
// killed at each of them, to show that the other processes go on.
#pragma once

#include <atomic>
#include <cstdint>

namespace softnic {

#ifdef SOFTNIC_KILL_POINTS
// Kills the process if SOFTNIC_KILL_AT names this call site (kill_point.cc).
void kill_point(const char* file, int line) noexcept;
#define SOFTNIC_SITE_ONLY const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define SOFTNIC_SITE_PARAM , SOFTNIC_SITE_ONLY
#define SOFTNIC_KILL_HERE() ::softnic::kill_point(file, line)
#else
#define SOFTNIC_SITE_PARAM
#define SOFTNIC_SITE_ONLY
#define SOFTNIC_KILL_HERE() ((void)0)
#endif

// A kill point for other stores: ring entries, payload bytes.
#ifdef SOFTNIC_KILL_POINTS
inline void kill_point_here(SOFTNIC_SITE_ONLY) noexcept { SOFTNIC_KILL_HERE(); }
#else
inline void kill_point_here() noexcept {}
#endif

template <class T>
class Shared {
 public:
  // New pages of a shared file are zero, which is the initial value of every Shared.
  T load(std::memory_order order = std::memory_order_acquire) const noexcept {
    return word_.load(order);
  }
  void store(T value,
             std::memory_order order = std::memory_order_release SOFTNIC_SITE_PARAM) noexcept {
    SOFTNIC_KILL_HERE();
    word_.store(value, order);
  }
  T exchange(T value SOFTNIC_SITE_PARAM) noexcept {
    SOFTNIC_KILL_HERE();
    return word_.exchange(value, std::memory_order_seq_cst);
  }
  T fetch_add(T value SOFTNIC_SITE_PARAM) noexcept {
    SOFTNIC_KILL_HERE();
    return word_.fetch_add(value, std::memory_order_acq_rel);
  }
  T fetch_or(T value SOFTNIC_SITE_PARAM) noexcept {
    SOFTNIC_KILL_HERE();
    return word_.fetch_or(value, std::memory_order_acq_rel);
  }
  T fetch_and(T value SOFTNIC_SITE_PARAM) noexcept {
    SOFTNIC_KILL_HERE();
    return word_.fetch_and(value, std::memory_order_acq_rel);
  }
  bool compare_exchange(T& expected, T desired SOFTNIC_SITE_PARAM) noexcept {
    SOFTNIC_KILL_HERE();
    return word_.compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                         std::memory_order_acquire);
  }

 private:
  std::atomic<T> word_{};
  static_assert(std::atomic<T>::is_always_lock_free, "shared words cross process borders");
};

}  // namespace softnic
