// SPDX-License-Identifier: Apache-2.0
//
// Registering one buffer with all rails of a comm: with all of them, or with none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "plugin/transfer/memory_handle.h"

namespace beeline {

struct Buffer {
  void* data = nullptr;
  std::size_t size = 0;
  MemoryKind kind = MemoryKind::kHost;
  int dmabuf_fd = -1;  // stays the caller's; may be closed when the buffer is registered
  std::uint64_t dmabuf_offset = 0;
};

struct Rail {
  const Device* device = nullptr;
  MrCache* cache = nullptr;
};

// Logs what failed, and why. `gpus` may be null: then GPU memory is refused.
Result<std::unique_ptr<MemoryHandle>> register_buffer(std::span<const Rail> rails,
                                                      const Buffer& buffer,
                                                      const gdr::GpuDirect* gpus);

}  // namespace beeline
