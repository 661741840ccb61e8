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
#include "plugin/memory/mr_cache.h"

namespace beeline::gdr {

// The two ways by which a NIC can access a GPU's memory.
enum class Way : std::uint8_t {
  kNone,
  kDmabuf,   // the GPU's driver exports the memory, and the NIC's driver imports it
  kPeermem,  // the NIC's driver gets the pages of a pointer from a kernel module (nvidia_peermem)
};
const char* to_string(Way way) noexcept;

// The result of an attempt to use one way.
struct Attempt {
  bool works = false;
  std::string why_not;  // "ibv_reg_dmabuf_mr: Operation not supported"
  int sys_errno = 0;
};

// Whether the device or its driver does not support the call. Some drivers return the kernel's
// internal ENOTSUPP, for which the C library has no text.
bool is_not_supported(int sys_errno) noexcept;
const char* errno_text(int sys_errno) noexcept;

inline constexpr const char* kDmabufsAreOff = "dma-bufs are turned off (NCCL_DMABUF_ENABLE)";

struct Ways {
  Attempt dmabuf;
  Attempt peermem;

  bool any() const noexcept { return dmabuf.works || peermem.works; }
  // The one that is preferred if both work.
  Way best() const noexcept {
    if (dmabuf.works) return Way::kDmabuf;
    return peermem.works ? Way::kPeermem : Way::kNone;
  }
};

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
