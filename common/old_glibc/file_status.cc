// SPDX-License-Identifier: Apache-2.0
//
// stat() and its relatives are functions only since glibc 2.33; before, headers turned them into
// others. The kernel's call fills the same structure on 64-bit processors. <sys/stat.h> is not
// included, because an older one defines these functions itself.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

int status_at(int folder, const char* path, void* status, int flags) {
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, status, flags));
}

}  // namespace

extern "C" {

int stat(const char* path, void* status) noexcept { return status_at(AT_FDCWD, path, status, 0); }
int stat64(const char* path, void* status) noexcept { return status_at(AT_FDCWD, path, status, 0); }
int lstat(const char* path, void* status) noexcept {
  return status_at(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
int lstat64(const char* path, void* status) noexcept {
  return status_at(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
int fstat(int fd, void* status) noexcept {
  return static_cast<int>(syscall(SYS_fstat, fd, status));
}
int fstat64(int fd, void* status) noexcept {
  return static_cast<int>(syscall(SYS_fstat, fd, status));
}
int fstatat(int folder, const char* path, void* status, int flags) noexcept {
  return status_at(folder, path, status, flags);
}
int fstatat64(int folder, const char* path, void* status, int flags) noexcept {
  return status_at(folder, path, status, flags);
}

}  // extern "C"
