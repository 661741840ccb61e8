// SPDX-License-Identifier: Apache-2.0
//
// std::condition_variable waits by the steady clock with a function of glibc 2.30. Before, a
// condition variable that was made with the default attributes can wait by the wall clock only. If
// that clock is set during the wait, the wait is longer or shorter; callers look at the steady
// clock afterwards.
#include <pthread.h>
#include <time.h>

#include <cerrno>

extern "C" int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                      clockid_t clock, const timespec* until) {
  constexpr long kSecond = 1'000'000'000;
  timespec now{}, wall{};
  if (clock_gettime(clock, &now) != 0) return EINVAL;
  clock_gettime(CLOCK_REALTIME, &wall);
  wall.tv_sec += until->tv_sec - now.tv_sec;
  wall.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (wall.tv_nsec >= kSecond) {
    wall.tv_nsec -= kSecond;
    ++wall.tv_sec;
  } else if (wall.tv_nsec < 0) {
    wall.tv_nsec += kSecond;
    --wall.tv_sec;
  }
  return pthread_cond_timedwait(condition, mutex, &wall);
}
