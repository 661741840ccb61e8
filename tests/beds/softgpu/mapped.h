// SPDX-License-Identifier: Apache-2.0
// Maps device memory and keeps it mapped, as a NIC does.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "tests/beds/softgpu/process.h"

namespace beeline::test {

// Maps the pages behind a descriptor that softgpu_dmabuf or softgpu_peermem gave, and closes it.
class Mapped {
 public:
  Mapped(int pages_fd, std::uint64_t offset, std::size_t length) {
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    skip_ = offset % page;
    size_ = skip_ + length;
    map_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, pages_fd,
                static_cast<off_t>(offset - skip_));
    close(pages_fd);
    BL_MUST(map_ != MAP_FAILED);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() { munmap(map_, size_); }

  unsigned char* bytes() const { return static_cast<unsigned char*>(map_) + skip_; }

 private:
  void* map_;
  std::size_t skip_;
  std::size_t size_;
};

inline Mapped map_dmabuf(Cuda& cuda, int fd, std::uint64_t* length) {
  int pages = -1;
  std::uint64_t offset = 0;
  BL_MUST_OK(cuda.softgpu_dmabuf(fd, &pages, &offset, length));
  return {pages, offset, *length};
}

inline Mapped map_peermem(Cuda& cuda, DevicePtr address, std::size_t length) {
  int pages = -1;
  std::uint64_t offset = 0;
  BL_MUST_OK(cuda.softgpu_peermem(reinterpret_cast<void*>(address), length, &pages, &offset));
  return {pages, offset, length};
}

}  // namespace beeline::test
