// SPDX-License-Identifier: Apache-2.0
#include "softnic/gpu/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <string>

namespace softnic::gpu {
namespace {

using beeline::fail;

// Locks are placed after the end of the file, which is permitted.
constexpr off_t kFirstUser = off_t{1} << 48;

struct flock byte_of(std::uint64_t user, short kind) {
  struct flock lock {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = kFirstUser + static_cast<off_t>(user);
  lock.l_len = 1;
  return lock;
}

std::array<std::atomic<std::uint64_t>, kMaxGpus> g_used;

std::atomic<std::uint64_t>& used(int gpu) noexcept { return g_used[static_cast<std::size_t>(gpu)]; }

}  // namespace

beeline::Result<int, int> Users::open_for(int file, std::uint64_t user) {
  beeline::UniqueFd own(
      ::open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDWR | O_CLOEXEC));
  if (!own) return fail(int{errno});
  struct flock lock = byte_of(user, F_RDLCK);
  if (::fcntl(own.get(), F_OFD_SETLK, &lock) != 0) return fail(int{errno});
  return own.release();
}

bool Users::has(int file, std::uint64_t user) noexcept {
  struct flock lock = byte_of(user, F_WRLCK);
  return ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

beeline::Result<FileId, int> id_of(int fd) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return fail(int{errno});
  return FileId{facts.st_dev, facts.st_ino};
}

std::shared_ptr<Pages> Pages::make(std::size_t size, int gpu) {
  beeline::UniqueFd file(::memfd_create("softgpu", MFD_CLOEXEC));
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(size)) != 0) return nullptr;
  void* const bytes = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (bytes == MAP_FAILED) return nullptr;
  return std::make_shared<Pages>(std::move(file), static_cast<std::byte*>(bytes), size, gpu);
}

Pages::Pages(beeline::UniqueFd file, std::byte* bytes, std::size_t size, int gpu) noexcept
    : file_(std::move(file)), bytes_(bytes), size_(size), gpu_(gpu) {
  used(gpu_) += size_;
}

Pages::~Pages() {
  ::munmap(bytes_, size_);
  used(gpu_) -= size_;
}

std::uint64_t used_on(int gpu) noexcept { return used(gpu); }

}  // namespace softnic::gpu
