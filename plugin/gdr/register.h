// SPDX-License-Identifier: Apache-2.0
//
// Registers GPU memory with one NIC: by a dma-buf from NCCL, by a dma-buf that the CUDA driver
// exports for the plugin, or by the pointer. If one way fails, the next one is tried, because NCCL
// does not retry.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/gpu/memory.h"
#include "plugin/gdr/ways.h"
#include "plugin/memory/mr_cache.h"

namespace beeline::gdr {

struct GpuRange {
  void* address = nullptr;
  std::size_t length = 0;
  int dmabuf_fd = -1;  // NCCL's; -1: none
  std::uint64_t dmabuf_offset = 0;
  std::uint64_t buffer_id = 0;  // CUDA's, of the allocation; 0: not known
};

// The ways that may be tried.
struct Means {
  const gpu::Cuda* cuda = nullptr;  // null: no driver
  const gpu::Gpu* gpu = nullptr;    // the GPU that has the memory; null: not known
  bool dmabuf = true;               // the settings allow dma-bufs
  bool pointer_first = false;       // peer memory works with this NIC, and dma-bufs do not
};

struct Registered {
  MrRef mr;
  Way way = Way::kNone;
};

struct Refusal {
  Error error;      // of the last attempt
  std::string why;  // the errors of all attempts, for messages
};

Result<Registered, Refusal> register_gpu(MrCache& cache, const GpuRange& range, const Means& means);

// These try only one way.
Result<MrRef, Attempt> by_dmabuf(MrCache& cache, const GpuRange& range, const Means& means);
Result<MrRef, Attempt> by_pointer(MrCache& cache, const GpuRange& range);

}  // namespace beeline::gdr
