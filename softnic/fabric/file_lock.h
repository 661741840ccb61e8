// SPDX-License-Identifier: Apache-2.0
// Locks that the kernel releases when their holder dies. They belong to the open file description,
// so two openings of one file in one process do not step on each other; a forked child must close
// its copy (Runtime does), or it keeps its parent's seat warm.
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <cstdint>

namespace softnic {

inline bool try_lock_byte(int fd, uint32_t byte) noexcept {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

inline void unlock_byte(int fd, uint32_t byte) noexcept {
  struct flock lock = {};
  lock.l_type = F_UNLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  (void)::fcntl(fd, F_OFD_SETLK, &lock);
}

// True if another open file description holds the byte.
inline bool byte_is_locked(int fd, uint32_t byte) noexcept {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace softnic
