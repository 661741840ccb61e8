// SPDX-License-Identifier: Apache-2.0
//
// Whether a NIC really reaches a GPU's memory. Modules that are loaded and calls that succeed say
// little: PCI access control, IOMMUs and mismatched drivers let registrations succeed and data get
// lost. So a small piece of memory is written and read through the NIC, and compared.
#pragma once

#include <cstdint>
#include <string>

#include "common/gpu/memory.h"
#include "plugin/device/loopback.h"
#include "plugin/gdr/register.h"

namespace beeline::gdr {

// A piece of a GPU's memory that NICs are tried on, and what it takes to look into it. While it
// lives, the GPU's primary context is this thread's.
struct Ground {
  // The GPU has to be in use.
  static Outcome<Ground> make(const gpu::Cuda& cuda, const gpu::Gpu& gpu);

  gpu::ContextScope scope;
  gpu::Memory memory;
};

struct ProofPlan {
  bool dmabuf = true;        // the person who runs the job allows dma-bufs
  bool transfer = true;      // false: registering is all that is tried
  bool needs_reads = false;  // only a READ through the NIC flushes what it has written
  std::int64_t limit_ns = 0;
  GidPolicy gid = {};
  int pkey_index = -1;  // as of connections
};

struct Proof {
  Ways ways = {};
  bool transferred = false;       // data was moved, and was right
  bool is_blocked = false;        // the NIC tried to, and the data did not get through
  std::string failure = {};       // why the pair cannot be used; empty: it can
  std::string why_unproven = {};  // of a pair that can be registered, but where nothing was moved
};

// Takes some milliseconds.
Proof prove(const Device& device, MrCache& cache, const gpu::Cuda& cuda, const gpu::Gpu& gpu,
            gpu::Memory& memory, const ProofPlan& plan);

// The same where no GPU is in use yet: what device and driver answer without any memory.
Ways ask_without_memory(const Device& device, const gpu::Gpu& gpu, const std::string& sysfs_root);

}  // namespace beeline::gdr
