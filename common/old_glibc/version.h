// SPDX-License-Identifier: Apache-2.0
//
// Versions of glibc's symbols. glibc 2.34 gave new versions to functions that moved from libpthread
// and libdl into libc, and the linker takes the newest. BL_OLD_GLIBC(pthread_once, BL_FIRST_GLIBC)
// declares old_pthread_once, which is the same function under the version that glibc 2.28 knows.
#pragma once

#if defined(__x86_64__)
#define BL_FIRST_GLIBC "2.2.5"
#elif defined(__aarch64__)
#define BL_FIRST_GLIBC "2.17"
#endif  // other processors need their first version here

#define BL_OLD_GLIBC(name, version)       \
  extern "C" decltype(::name) old_##name; \
  __asm__(".symver old_" #name "," #name "@GLIBC_" version)
