// SPDX-License-Identifier: Apache-2.0
//
// Registers a buffer with the rails of a comm. A rail that refuses it is left out for that buffer:
// its data travels over the others. Only if no rail takes the buffer, that is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/base/problem.h"
#include "plugin/transfer/left_out_rails.h"
#include "plugin/transfer/memory_handle.h"

namespace beeline {

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

// A handle for a buffer that is registered later, with register_again().
std::unique_ptr<MemoryHandle> handle_without_rails(const Buffer& buffer,
                                                   const gdr::GpuDirect* gpus);

// Registers it with one more device, which is to serve this rail. The keys of the handle stay as
// they are. Says why if the device refuses; nothing is logged.
Outcome<void> register_again(MemoryHandle& handle, std::size_t rail, const Rail& with,
                             const gdr::GpuDirect* gpus);

}  // namespace beeline
