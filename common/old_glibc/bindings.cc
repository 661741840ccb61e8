// SPDX-License-Identifier: Apache-2.0
//
// Functions that are the same in glibc 2.28 and today, but have got a new version since. Each
// definition here replaces glibc's for all code that is linked with it, also for the C++ library's
// archives, and calls glibc's under its old version.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include <cmath>

#include "common/old_glibc/version.h"

#ifdef __x86_64__
#define BL_SETNAME_GLIBC "2.12"
#define BL_DLINFO_GLIBC "2.3.3"
#else
#define BL_SETNAME_GLIBC BL_FIRST_GLIBC
#define BL_DLINFO_GLIBC BL_FIRST_GLIBC
#endif

extern "C" int __pthread_key_create(pthread_key_t* key, void (*destroy)(void*));

BL_OLD_GLIBC(dlopen, BL_FIRST_GLIBC);
BL_OLD_GLIBC(dlclose, BL_FIRST_GLIBC);
BL_OLD_GLIBC(dladdr, BL_FIRST_GLIBC);
BL_OLD_GLIBC(dlerror, BL_FIRST_GLIBC);
BL_OLD_GLIBC(dlinfo, BL_DLINFO_GLIBC);
BL_OLD_GLIBC(dlsym, BL_FIRST_GLIBC);
BL_OLD_GLIBC(dlvsym, BL_FIRST_GLIBC);
BL_OLD_GLIBC(pow, BL_FIRST_GLIBC);
BL_OLD_GLIBC(pthread_create, BL_FIRST_GLIBC);
BL_OLD_GLIBC(pthread_detach, BL_FIRST_GLIBC);
BL_OLD_GLIBC(pthread_join, BL_FIRST_GLIBC);
BL_OLD_GLIBC(pthread_getspecific, BL_FIRST_GLIBC);
BL_OLD_GLIBC(pthread_setspecific, BL_FIRST_GLIBC);
BL_OLD_GLIBC(__pthread_key_create, BL_FIRST_GLIBC);
BL_OLD_GLIBC(pthread_key_create, BL_FIRST_GLIBC);
BL_OLD_GLIBC(pthread_key_delete, BL_FIRST_GLIBC);
BL_OLD_GLIBC(pthread_mutex_trylock, BL_FIRST_GLIBC);
BL_OLD_GLIBC(pthread_once, BL_FIRST_GLIBC);
BL_OLD_GLIBC(pthread_setname_np, BL_SETNAME_GLIBC);
BL_OLD_GLIBC(pthread_sigmask, BL_FIRST_GLIBC);

extern "C" {

void* dlopen(const char* file, int mode) noexcept { return old_dlopen(file, mode); }
int dladdr(const void* address, Dl_info* info) noexcept { return old_dladdr(address, info); }
int dlclose(void* library) noexcept { return old_dlclose(library); }
char* dlerror() noexcept { return old_dlerror(); }
int dlinfo(void* library, int what, void* result) noexcept {
  return old_dlinfo(library, what, result);
}
void* dlsym(void* library, const char* name) noexcept { return old_dlsym(library, name); }
void* dlvsym(void* library, const char* name, const char* version) noexcept {
  return old_dlvsym(library, name, version);
}

// Before 2.29, it reports errors through matherr as well, which nothing here uses.
double pow(double base, double exponent) noexcept { return old_pow(base, exponent); }

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) noexcept {
  return old_pthread_create(thread, attributes, run, argument);
}
int pthread_detach(pthread_t thread) noexcept { return old_pthread_detach(thread); }
int pthread_join(pthread_t thread, void** result) { return old_pthread_join(thread, result); }
int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  return old_pthread_setname_np(thread, name);
}

void* pthread_getspecific(pthread_key_t key) noexcept { return old_pthread_getspecific(key); }
int pthread_setspecific(pthread_key_t key, const void* value) noexcept {
  return old_pthread_setspecific(key, value);
}
int __pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) {
  return old___pthread_key_create(key, destroy);
}
int pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) noexcept {
  return old_pthread_key_create(key, destroy);
}
int pthread_key_delete(pthread_key_t key) noexcept { return old_pthread_key_delete(key); }

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  return old_pthread_mutex_trylock(mutex);
}
int pthread_once(pthread_once_t* once, void (*run)()) { return old_pthread_once(once, run); }
int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  return old_pthread_sigmask(how, set, old);
}

// glibc 2.32 says here whether the process has one thread only; std::shared_ptr then counts without
// atomic instructions. Always "no" is right as well.
extern const char __libc_single_threaded;
const char __libc_single_threaded = 0;

}  // extern "C"
