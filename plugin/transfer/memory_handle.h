// SPDX-License-Identifier: Apache-2.0
//
// The handle that regMr returns to NCCL: the registrations of one buffer, by rail. A rail may be
// missing; its keys are then 0. The fields that isend reads are in one cache line.
//
// The keys may change while a rail gets another device: see registered_buffers.h.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plugin/gdr/gpu_direct.h"
#include "plugin/memory/mr_cache.h"
#include "plugin/wire/limits.h"

namespace beeline {

struct Device;
class RegisteredBuffers;

struct Buffer {
  void* data = nullptr;
  std::size_t size = 0;
  MemoryKind kind = MemoryKind::kHost;
  int dmabuf_fd = -1;  // owned by the caller, who may close it after the registration
  std::uint64_t dmabuf_offset = 0;
};

struct Registration {
  std::uint8_t rail = 0;
  const Device* device = nullptr;
  MrRef mr;  // empty: the device has refused the buffer
};

struct alignas(64) MemoryHandle {
  // The flags of a send that fits into its work request: inline if the CPU may read the memory.
  unsigned short_send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  std::array<std::uint32_t, wire::kMaxRails> lkeys{};
  // A bit for each rail of the comm that the buffer is registered with: only these may carry its
  // data. In a credit line of a receiver with several rails, the key 0 says that a rail is not
  // among them.
  std::uint8_t rails = 0;
  std::array<std::uint32_t, wire::kMaxRails> rkeys{};
  // May contain rails that keep_rails() has left out, and devices that are not used yet.
  std::vector<Registration> registrations;
  gdr::FlushNeed flush;                             // of GPU memory
  Buffer buffer;                                    // without the caller's descriptor
  std::shared_ptr<RegisteredBuffers> comm_buffers;  // that it is one of

  // Data may travel by this rail.
  void use(std::size_t rail, const MrRef& registered) noexcept {
    rails |= static_cast<std::uint8_t>(1U << rail);
    lkeys[rail] = registered.lkey();
    rkeys[rail] = registered.rkey();
  }
  // Leaves out the rails that are not among these.
  void keep_rails(std::uint8_t kept) noexcept {
    rails &= kept;
    for (std::size_t rail = 0; rail < wire::kMaxRails; ++rail) {
      if ((rails >> rail & 1) == 0) lkeys[rail] = rkeys[rail] = 0;
    }
  }
};

}  // namespace beeline
