// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a memory region are when it is not the program's own pages: a dma-buf, or
// memory of a GPU. A software NIC moves bytes with the processor, so it maps what it is given. What
// a real GPU's driver hands out cannot be mapped, or not so that processes could copy to and fro;
// nic/gpu_mirror.h is for that.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/result.h"
#include "softnic/fabric/mapping.h"

namespace softnic {

// Bytes of a file that can be mapped, from any offset on.
class FileWindow {
 public:
  FileWindow() noexcept = default;
  // The error is an errno. ENOSYS: it is there, and cannot be mapped in a way that helps.
  static beeline::Result<FileWindow, int> map(int fd, std::uint64_t offset, std::size_t length,
                                              bool writes);

  std::byte* start() const noexcept { return mapping_.base() + skipped_; }
  explicit operator bool() const noexcept { return static_cast<bool>(mapping_); }

 private:
  FileWindow(Mapping mapping, std::size_t skipped) noexcept;
  Mapping mapping_;
  std::size_t skipped_ = 0;  // mappings begin at a page
};

// The library of the CUDA driver that the program has loaded, or null. Looked for each time: a
// program may load it after it has used us for long.
void* loaded_cuda_driver();

// [offset, offset + length) of a dma-buf: one of softgpu's, or any file that can be mapped. ENOSYS:
// out of a processor's reach, as a real GPU's.
beeline::Result<FileWindow, int> map_dmabuf(int fd, std::uint64_t offset, std::size_t length,
                                            bool writes);

// A pointer into the memory of a GPU, as a peer memory driver would resolve it. EFAULT: it is none.
// ENOSYS: only a CUDA driver could say, if there is one.
beeline::Result<FileWindow, int> map_gpu_memory(const void* address, std::size_t length,
                                                bool writes);

}  // namespace softnic
