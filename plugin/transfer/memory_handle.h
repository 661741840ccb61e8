// SPDX-License-Identifier: Apache-2.0
//
// The handle that regMr returns to NCCL: the registrations of one buffer, by rail. The fields that
// isend reads are in one cache line.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugin/gdr/gpu_direct.h"
#include "plugin/memory/mr_cache.h"
#include "plugin/wire/limits.h"

namespace beeline {

struct alignas(64) MemoryHandle {
  // The flags of a send that fits into its work request: inline if the CPU may read the memory.
  unsigned short_send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  std::array<std::uint32_t, wire::kMaxRails> lkeys{};
  std::array<std::uint32_t, wire::kMaxRails> rkeys{};
  std::vector<MrRef> registrations;
  gdr::FlushNeed flush;  // of GPU memory
};

}  // namespace beeline
