// SPDX-License-Identifier: Apache-2.0
//
// Registers a buffer with the rails of a comm. A rail that refuses it is left out for that buffer:
// its data travels over the others. Only if no rail takes the buffer, that is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "plugin/transfer/left_out_rails.h"
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
  MrCache* cache = nullptr;  // null: no path of the comm uses this rail, so nothing is registered
};

// Logs a failure with its cause. If other rails have taken the buffer, `left_out` decides whether
// it is logged. `gpus` may be null: then GPU memory is refused.
Result<std::unique_ptr<MemoryHandle>> register_buffer(std::span<const Rail> rails,
                                                      const Buffer& buffer,
                                                      const gdr::GpuDirect* gpus,
                                                      LeftOutRails& left_out);

}  // namespace beeline
