// SPDX-License-Identifier: Apache-2.0
// Maps the memory of a region that is not host memory of the program: a dma-buf, or memory of a
// GPU. softnic moves bytes with the processor, so it needs a mapping. Memory of a real GPU cannot
// be mapped, or not so that the kernel copies it between processes; nic/gpu_mirror.h is for that.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/result.h"
#include "softnic/fabric/mapping.h"

namespace softnic {

// A mapping of a part of a file, from any offset on.
class FileWindow {
 public:
  FileWindow() noexcept = default;
  // The error is an errno. ENOSYS: the file has these bytes but they cannot be mapped and copied.
  static beeline::Result<FileWindow, int> map(int fd, std::uint64_t offset, std::size_t length,
                                              bool writes);

  std::byte* start() const noexcept { return mapping_.base() + skipped_; }
  explicit operator bool() const noexcept { return static_cast<bool>(mapping_); }

 private:
  FileWindow(Mapping mapping, std::size_t skipped) noexcept;
  Mapping mapping_;
  std::size_t skipped_ = 0;  // mappings begin at a page
};

// The CUDA driver library that the program has loaded, or null. It is looked up in each call,
// because a program may load it late.
void* loaded_cuda_driver();

// Maps [offset, offset + length) of a dma-buf: one of softgpu, or any file that can be mapped.
// ENOSYS: the processor cannot access it, as that of a real GPU.
beeline::Result<FileWindow, int> map_dmabuf(int fd, std::uint64_t offset, std::size_t length,
                                            bool writes);

// Maps GPU memory by its pointer, as a peer-memory driver resolves it. EFAULT: the pointer is not
// GPU memory. ENOSYS: softgpu is not loaded or does not allow the mapping; a mirror may be
// possible.
beeline::Result<FileWindow, int> map_gpu_memory(const void* address, std::size_t length,
                                                bool writes);

// Makes each flush by the CUDA driver call `reveal`, if the driver is softgpu.
void call_at_flush(void (*reveal)());

}  // namespace softnic
