// SPDX-License-Identifier: Apache-2.0
// File locks that the kernel releases when their holder dies. They belong to the open file
// description, so a process can open one file twice and hold different locks. A forked child must
// close its copy of the descriptor (Runtime does), or its parent's seat still looks alive after the
// parent has died.
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <cstdint>

namespace softnic {

// A request for a lock on `count` bytes of the file.
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

// True if another open file description has locked one of the bytes.
inline bool is_any_byte_locked(int fd, std::uint32_t first, std::uint32_t count) noexcept {
  struct flock range = byte_range(F_WRLCK, first, count);
  return ::fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

inline bool is_byte_locked(int fd, std::uint32_t byte) noexcept {
  return is_any_byte_locked(fd, byte, 1);
}

}  // namespace softnic
