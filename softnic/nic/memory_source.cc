// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/memory_source.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/base/fd.h"
#include "softnic/gpu/softgpu.h"

namespace softnic {
namespace {

using beeline::fail;
using beeline::Result;
using beeline::UniqueFd;

// Finds a function of softgpu, if that is the CUDA driver that the program has loaded.
template <class Function>
Function* find_in_softgpu(const char* name) {
  void* const library = loaded_cuda_driver();
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

int size_of(int fd, std::uint64_t& size) {
  struct stat facts = {};
  if (::fstat(fd, &facts) != 0) return errno;
  if (!S_ISREG(facts.st_mode)) {
    // The size of a device's dma-buf is found by seeking.
    const off_t end = ::lseek(fd, 0, SEEK_END);
    if (end < 0) return EINVAL;
    size = static_cast<std::uint64_t>(end);
    return 0;
  }
  size = static_cast<std::uint64_t>(facts.st_size);
  return 0;
}

// A device's memory may be mapped and yet not be copied by the kernel for another process.
bool can_be_copied(const std::byte* start) {
  std::byte byte{};
  const iovec to = {&byte, 1};
  const iovec from = {const_cast<std::byte*>(start), 1};
  return ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) == 1;
}

}  // namespace

FileWindow::FileWindow(Mapping mapping, std::size_t skipped) noexcept
    : mapping_(std::move(mapping)), skipped_(skipped) {}

Result<FileWindow, int> FileWindow::map(int fd, std::uint64_t offset, std::size_t length,
                                        bool writes) {
  std::uint64_t size = 0;
  if (const int error = size_of(fd, size); error != 0) return fail(error);
  if (length == 0 || offset > size || length > size - offset) return fail(EINVAL);
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t skipped = offset % page;
  const int rights = writes ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const base = ::mmap(nullptr, length + skipped, rights, MAP_SHARED, fd,
                            static_cast<off_t>(offset - skipped));
  if (base == MAP_FAILED) return fail(errno == ENOMEM || errno == EACCES ? errno : ENOSYS);
  FileWindow window(Mapping(base, length + skipped), skipped);
  if (!can_be_copied(window.start())) return fail(ENOSYS);
  return window;
}

void* loaded_cuda_driver() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library != nullptr) ::dlclose(library);  // the program holds its own reference
  return library;
}

Result<FileWindow, int> map_dmabuf(int fd, std::uint64_t offset, std::size_t length, bool writes) {
  if (auto* const resolve = find_in_softgpu<decltype(softgpu_dmabuf)>("softgpu_dmabuf")) {
    int pages_fd = -1;
    std::uint64_t start = 0;
    std::uint64_t size = 0;
    const int error = resolve(fd, &pages_fd, &start, &size);
    if (error == 0) {
      const UniqueFd pages(pages_fd);
      if (offset > size || length > size - offset) return fail(EINVAL);
      return FileWindow::map(pages.get(), start + offset, length, writes);
    }
    if (error != ENOENT) return fail(error);
  }
  return FileWindow::map(fd, offset, length, writes);
}

Result<FileWindow, int> map_gpu_memory(const void* address, std::size_t length, bool writes) {
  auto* const resolve = find_in_softgpu<decltype(softgpu_peermem)>("softgpu_peermem");
  if (resolve == nullptr) return fail(ENOSYS);
  int pages_fd = -1;
  std::uint64_t offset = 0;
  if (const int error = resolve(address, length, &pages_fd, &offset); error != 0) {
    return fail(error);
  }
  const UniqueFd pages(pages_fd);
  return FileWindow::map(pages.get(), offset, length, writes);
}

void call_at_flush(void (*reveal)()) {
  auto* const set = find_in_softgpu<decltype(softgpu_at_flush)>("softgpu_at_flush");
  if (set != nullptr) set(reveal);
}

}  // namespace softnic
