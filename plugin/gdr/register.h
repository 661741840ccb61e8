// SPDX-License-Identifier: Apache-2.0
//
// Registering GPU memory with one NIC: by a dma-buf that NCCL hands over, by one that we have the
// driver make, by the pointer alone. What one way refuses the next one tries, since NCCL would not.
//
// A way that mlx5's data-direct devices have is one more attempt in here, and one more Way.
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

// What may be tried.
struct Means {
  const gpu::Cuda* cuda = nullptr;  // null: no driver
  const gpu::Gpu* gpu = nullptr;    // whose memory it is; null: not known
  bool dmabuf = true;               // the person who runs the job allows dma-bufs
  bool pointer_first = false;       // peer memory works here, and dma-bufs do not
};

struct Registered {
  MrRef mr;
  Way way = Way::kNone;
};

struct Refusal {
  Error error;      // of the last attempt
  std::string why;  // every attempt, for people
};

Result<Registered, Refusal> register_gpu(MrCache& cache, const GpuRange& range, const Means& means);

// One way alone.
Result<MrRef, Attempt> by_dmabuf(MrCache& cache, const GpuRange& range, const Means& means);
Result<MrRef, Attempt> by_pointer(MrCache& cache, const GpuRange& range);

}  // namespace beeline::gdr
