// SPDX-License-Identifier: Apache-2.0
//
// Properties of a GPU that matter when a NIC accesses its memory, as the CUDA driver reports them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/gpu/cuda.h"

namespace beeline::gpu {

struct Gpu {
  Ordinal ordinal = 0;  // in this process
  std::string name;     // "NVIDIA H200"
  std::string pci;      // "0000:1b:00.0", as sysfs writes it
  int compute_major = 0;
  int compute_minor = 0;
  bool gdr = false;             // the driver supports GPUDirect RDMA
  bool dmabuf = false;          // the driver exports its memory as dma-bufs
  bool coherent = false;        // its memory has a path beside PCIe: dma-bufs have to ask for PCIe
  bool host_can_flush = false;  // cuFlushGPUDirectRDMAWrites
  // CUDA's number for who sees the writes of NICs without a flush once they have completed.
  int writes_ordering = 0;

  // Whether at least its own kernels do.
  bool has_ordered_writes() const noexcept { return writes_ordering >= cuda_abi::kOrderingOwner; }

  // Up to Ampere, NCCL asks for flushes by itself; later only if the plugin tells it to.
  bool is_flushed_by_nccl() const noexcept { return compute_major < 9; }
};

// "GPU 0 (0000:1b:00.0)": how messages name it.
std::string label(const Gpu& gpu);

Outcome<Gpu> read_gpu(const Cuda& cuda, Ordinal ordinal);

// The GPUs that have a primary context in this process, the calling thread's own first. This
// creates no context.
std::vector<Ordinal> gpus_in_use(const Cuda& cuda);

// The GPU that has this memory; -1: none.
Ordinal owner_of(const Cuda& cuda, const void* pointer) noexcept;

// CUDA's number of the allocation, which is unique in this process; 0: not known.
std::uint64_t buffer_id_of(const Cuda& cuda, const void* pointer) noexcept;

// The size of the GPU's PCI window for its memory (BAR1); 0: not known. `sysfs_root` is "/sys".
std::size_t reachable_bytes(const std::string& sysfs_root, const Gpu& gpu);

}  // namespace beeline::gpu
