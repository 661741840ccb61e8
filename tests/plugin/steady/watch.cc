// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/steady/watch.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>

namespace beeline::test {
namespace {

// In the program, not in a library, so that reading it allocates nothing.
thread_local constinit Asked of_this_thread;

// The C library's function. A static initializer would take a lock, so there is none.
template <class Function>
Function* next(std::atomic<Function*>& known, const char* name, const char* version) noexcept {
  Function* found = known.load(std::memory_order_relaxed);
  if (found == nullptr) {
    void* const symbol =
        version != nullptr ? ::dlvsym(RTLD_NEXT, name, version) : ::dlsym(RTLD_NEXT, name);
    if (symbol == nullptr) std::abort();
    found = reinterpret_cast<Function*>(symbol);
    known.store(found, std::memory_order_relaxed);
  }
  return found;
}

}  // namespace

Asked asked() noexcept { return of_this_thread; }

Asked operator-(const Asked& now, const Asked& then) noexcept {
  return {.heap = now.heap - then.heap,
          .maps = now.maps - then.maps,
          .locks = now.locks - then.locks,
          .direct = now.direct - then.direct};
}

}  // namespace beeline::test

using beeline::test::next;
using beeline::test::of_this_thread;

extern "C" {

// glibc's functions for programs that replace its heap.
// NOLINTBEGIN(bugprone-reserved-identifier)
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* memory);
// NOLINTEND(bugprone-reserved-identifier)

void* malloc(std::size_t size) noexcept {
  ++of_this_thread.heap;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  ++of_this_thread.heap;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) noexcept {
  ++of_this_thread.heap;
  return __libc_realloc(memory, size);
}
void free(void* memory) noexcept {
  ++of_this_thread.heap;
  __libc_free(memory);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  ++of_this_thread.heap;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  ++of_this_thread.heap;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) noexcept {
  ++of_this_thread.heap;
  *memory = __libc_memalign(alignment, size);
  return *memory != nullptr ? 0 : ENOMEM;
}

// FORWARD(counter, result, name, version or nullptr, (parameters), (arguments), noexcept or not)
#define FORWARD(counter, result, name, version, parameters, arguments, ...) \
  result name parameters __VA_ARGS__ {                                      \
    static constinit std::atomic<result(*) parameters> known{nullptr};      \
    ++of_this_thread.counter;                                               \
    return next<result parameters>(known, #name, version) arguments;        \
  }

FORWARD(maps, void*, mmap, nullptr,
        (void* at, std::size_t size, int prot, int flags, int fd, off_t offset),
        (at, size, prot, flags, fd, offset), noexcept)
FORWARD(maps, int, munmap, nullptr, (void* at, std::size_t size), (at, size), noexcept)
FORWARD(maps, int, madvise, nullptr, (void* at, std::size_t size, int advice), (at, size, advice),
        noexcept)
FORWARD(maps, int, mprotect, nullptr, (void* at, std::size_t size, int prot), (at, size, prot),
        noexcept)
FORWARD(maps, int, brk, nullptr, (void* end), (end), noexcept)
FORWARD(maps, void*, sbrk, nullptr, (std::intptr_t by), (by), noexcept)

FORWARD(locks, int, pthread_mutex_lock, nullptr, (pthread_mutex_t * lock), (lock), noexcept)
FORWARD(locks, int, pthread_mutex_trylock, nullptr, (pthread_mutex_t * lock), (lock), noexcept)
FORWARD(locks, int, pthread_mutex_timedlock, nullptr, (pthread_mutex_t * lock, const timespec* end),
        (lock, end), noexcept)
FORWARD(locks, int, pthread_mutex_clocklock, nullptr,
        (pthread_mutex_t * lock, clockid_t clock, const timespec* end), (lock, clock, end),
        noexcept)
FORWARD(locks, int, pthread_mutex_unlock, nullptr, (pthread_mutex_t * lock), (lock), noexcept)
FORWARD(locks, int, pthread_rwlock_rdlock, nullptr, (pthread_rwlock_t * lock), (lock), noexcept)
FORWARD(locks, int, pthread_rwlock_wrlock, nullptr, (pthread_rwlock_t * lock), (lock), noexcept)
FORWARD(locks, int, pthread_rwlock_tryrdlock, nullptr, (pthread_rwlock_t * lock), (lock), noexcept)
FORWARD(locks, int, pthread_rwlock_trywrlock, nullptr, (pthread_rwlock_t * lock), (lock), noexcept)
FORWARD(locks, int, pthread_rwlock_unlock, nullptr, (pthread_rwlock_t * lock), (lock), noexcept)
FORWARD(locks, int, pthread_spin_lock, nullptr, (pthread_spinlock_t * lock), (lock), noexcept)
FORWARD(locks, int, pthread_spin_trylock, nullptr, (pthread_spinlock_t * lock), (lock), noexcept)
// Each has two versions. Current programs use the newer one.
FORWARD(locks, int, pthread_cond_wait, "GLIBC_2.3.2",
        (pthread_cond_t * cond, pthread_mutex_t* lock), (cond, lock))
FORWARD(locks, int, pthread_cond_timedwait, "GLIBC_2.3.2",
        (pthread_cond_t * cond, pthread_mutex_t* lock, const timespec* end), (cond, lock, end))
FORWARD(locks, int, pthread_cond_clockwait, nullptr,
        (pthread_cond_t * cond, pthread_mutex_t* lock, clockid_t clock, const timespec* end),
        (cond, lock, clock, end))
FORWARD(locks, int, pthread_cond_signal, "GLIBC_2.3.2", (pthread_cond_t * cond), (cond), noexcept)
FORWARD(locks, int, pthread_cond_broadcast, "GLIBC_2.3.2", (pthread_cond_t * cond), (cond),
        noexcept)
FORWARD(locks, int, sem_wait, nullptr, (sem_t * semaphore), (semaphore))
FORWARD(locks, int, sem_trywait, nullptr, (sem_t * semaphore), (semaphore), noexcept)
FORWARD(locks, int, sem_timedwait, nullptr, (sem_t * semaphore, const timespec* end),
        (semaphore, end))
FORWARD(locks, int, sem_post, nullptr, (sem_t * semaphore), (semaphore), noexcept)
#undef FORWARD

long syscall(long number, ...) noexcept {
  static constinit std::atomic<long (*)(long, ...)> known{nullptr};
  ++of_this_thread.direct;
  va_list values;
  va_start(values, number);
  long words[6];
  for (long& word : words) word = va_arg(values, long);
  va_end(values);
  return next<long(long, ...)>(known, "syscall", nullptr)(number, words[0], words[1], words[2],
                                                          words[3], words[4], words[5]);
}

}  // extern "C"
