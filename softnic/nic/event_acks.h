// SPDX-License-Identifier: Apache-2.0
// Waits until the program has acknowledged all events of an object. ibv_destroy_qp, ibv_destroy_cq
// and ibv_destroy_srq must not return earlier.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace softnic {

inline void wait_for_acks(pthread_mutex_t& mutex, pthread_cond_t& cond,
                          const std::uint32_t& completed, const std::uint32_t& reported) noexcept {
  pthread_mutex_lock(&mutex);
  while (completed != reported) pthread_cond_wait(&cond, &mutex);
  pthread_mutex_unlock(&mutex);
}

inline void acknowledge(pthread_mutex_t& mutex, pthread_cond_t& cond,
                        std::uint32_t& completed) noexcept {
  pthread_mutex_lock(&mutex);
  ++completed;
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&mutex);
}

}  // namespace softnic
