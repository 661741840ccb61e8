// SPDX-License-Identifier: Apache-2.0
//
// Registers a buffer with all rails of a comm. If one of them fails, none is kept.
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
  int dmabuf_fd = -1;  // owned by the caller, who may close it after the registration
  std::uint64_t dmabuf_offset = 0;
};

struct Rail {
  const Device* device = nullptr;
  MrCache* cache = nullptr;
};

// Logs a failure with its cause. `gpus` may be null: then GPU memory is refused.
Result<std::unique_ptr<MemoryHandle>> register_buffer(std::span<const Rail> rails,
                                                      const Buffer& buffer,
                                                      const gdr::GpuDirect* gpus);

}  // namespace beeline
