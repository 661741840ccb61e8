// SPDX-License-Identifier: Apache-2.0
// Locks that the kernel releases when their holder dies. They belong to the open file description,
// so two openings of one file in one process do not step on each other; a forked child must close
// its copy (Runtime does), or it keeps its parent's seat warm.
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <cstdint>

namespace softnic {

// A lock request for `count` bytes of the file.
inline struct flock byte_range(short type, std::uint32_t first, std::uint32_t count) noexcept {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = first;
  range.l_len = count;
  return range;
}

inline bool try_lock_byte(int fd, std::uint32_t byte) noexcept {
  const struct flock range = byte_range(F_WRLCK, byte, 1);
  return ::fcntl(fd, F_OFD_SETLK, &range) == 0;
}

// True if another open file description holds one of the bytes.
inline bool any_byte_is_locked(int fd, std::uint32_t first, std::uint32_t count) noexcept {
  struct flock range = byte_range(F_WRLCK, first, count);
  return ::fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

inline bool byte_is_locked(int fd, std::uint32_t byte) noexcept {
  return any_byte_is_locked(fd, byte, 1);
}

}  // namespace softnic
