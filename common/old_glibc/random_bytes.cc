// SPDX-License-Identifier: Apache-2.0
//
// Functions of glibc 2.36. std::random_device uses arc4random, Debian's archive of expat
// arc4random_buf, for the key of its hash tables.
#include <stdlib.h>
#include <sys/random.h>
#include <sys/types.h>

extern "C" void arc4random_buf(void* bytes, size_t count) noexcept {
  auto* at = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t got = getrandom(at, count, 0);  // only a signal interrupts it, before any byte
    if (got < 0) continue;
    at += got;
    count -= static_cast<size_t>(got);
  }
}

extern "C" unsigned arc4random() noexcept {
  unsigned value = 0;
  arc4random_buf(&value, sizeof(value));
  return value;
}
