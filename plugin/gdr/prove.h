// SPDX-License-Identifier: Apache-2.0
//
// Tests whether a NIC can access a GPU's memory. Loaded modules and successful registrations are
// not enough: with PCI access control, IOMMUs or mismatched drivers, data can still be lost. So the
// NIC writes and reads a small piece of memory, and the data is compared.
#pragma once

#include <cstdint>
#include <string>

#include "common/gpu/memory.h"
#include "plugin/device/loopback.h"
#include "plugin/gdr/register.h"

namespace beeline::gdr {

// A piece of a GPU's memory for the tests. As long as it exists, the GPU's primary context is
// current in this thread.
struct GpuScratch {
  // The GPU must be in use.
  static Outcome<GpuScratch> make(const gpu::Cuda& cuda, const gpu::Gpu& gpu);

  gpu::ContextScope scope;
  gpu::Memory memory;
};

struct ProofPlan {
  bool dmabuf = true;        // the settings allow dma-bufs
  bool transfer = true;      // false: only test registering
  bool needs_reads = false;  // only a READ through the NIC can flush its writes
  std::int64_t limit_ns = 0;
  GidPolicy gid = {};
  PkeyChoice pkey = {};  // as for connections
};

struct Proof {
  Ways ways = {};
  bool transferred = false;       // data was transferred, and it was correct
  bool is_blocked = false;        // the NIC transferred data, and it did not arrive
  std::string failure = {};       // why the pair cannot be used; empty: it can
  std::string why_unproven = {};  // why no data was transferred, although registering works
};

// Tests one pair of NIC and GPU. Takes some milliseconds.
Proof prove(const Device& device, MrCache& cache, const gpu::Cuda& cuda, const gpu::Gpu& gpu,
            gpu::Memory& memory, const ProofPlan& plan);

// Asks the device and the drivers what they support, for a process that does not use a GPU yet.
Ways ask_without_memory(const Device& device, const gpu::Gpu& gpu, const std::string& sysfs_root);

// Whether sysfs shows a peer-memory module. It may still not work.
bool is_peer_memory_loaded(const std::string& sysfs_root);

}  // namespace beeline::gdr
