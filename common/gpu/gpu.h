// SPDX-License-Identifier: Apache-2.0
//
// What the driver says of a GPU, as far as a NIC's access to its memory is concerned.
#pragma once

#include <string>
#include <vector>

#include "common/gpu/cuda.h"

namespace beeline::gpu {

struct Gpu {
  Ordinal ordinal = 0;  // as this process counts
  std::string name;     // "NVIDIA H200"
  std::string pci;      // "0000:1b:00.0", as sysfs writes it
  int compute_major = 0;
  int compute_minor = 0;
  bool gdr = false;       // NICs may reach its memory at all
  bool dmabuf = false;    // the driver makes dma-bufs of it
  bool coherent = false;  // a second way to its memory beside PCIe: dma-bufs have to ask for PCIe
  bool host_can_flush = false;  // cuFlushGPUDirectRDMAWrites
  // For whom what NICs have written is there when their completions are, as CUDA numbers it.
  int writes_ordering = 0;

  // For its own kernels, at least.
  bool writes_are_ordered() const noexcept { return writes_ordering >= cuda_abi::kOrderingOwner; }

  // NCCL asks for flushes by itself up to Ampere, and after that only where it is told to.
  bool nccl_flushes() const noexcept { return compute_major < 9; }
};

// "GPU 0 (0000:1b:00.0)": how messages name it.
std::string label(const Gpu& gpu);

Outcome<Gpu> read_gpu(const Cuda& cuda, Ordinal ordinal);

// The GPUs that this process has begun to use, the calling thread's own first. To ask leaves those
// that nobody uses asleep.
std::vector<Ordinal> gpus_in_use(const Cuda& cuda);

// Whose memory that is; -1: no GPU's.
Ordinal owner_of(const Cuda& cuda, const void* pointer) noexcept;

// The number of the allocation, which no other in this process has or will have; 0: not known.
std::uint64_t buffer_id_of(const Cuda& cuda, const void* pointer) noexcept;

// Bytes of GPU memory that NICs can reach at once (BAR1); 0: not known. `sysfs_root` is "/sys".
std::size_t reachable_bytes(const std::string& sysfs_root, const Gpu& gpu);

}  // namespace beeline::gpu
