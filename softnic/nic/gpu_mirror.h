// SPDX-License-Identifier: Apache-2.0
// A region of GPU memory that the processor cannot map, such as that of a real GPU. softnic works
// on host memory, and the CUDA driver copies. There are two mappings as long as the region: peers
// write into the inbox and data to be sent is read from the outbox. With one mapping for both,
// copying old bytes from the GPU would overwrite bytes that have just arrived.
//
// Threads: only one thread may call its functions at a time (GpuMirrors ensures that).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/base/problem.h"
#include "softnic/fabric/arena.h"
#include "softnic/fabric/mapping.h"
#include "softnic/nic/gpu_copier.h"

namespace softnic {

class GpuMirror {
 public:
  // Creates a mirror of [address, address + length), which is memory of the copier's GPU. Returns
  // null if no address space is left. The copier must outlive the mirror.
  static std::unique_ptr<GpuMirror> make(GpuCopier& copier, std::uint64_t address,
                                         std::size_t length);

  std::uint64_t inbox() const noexcept { return reinterpret_cast<std::uint64_t>(inbox_.base()); }
  std::uint64_t outbox() const noexcept { return reinterpret_cast<std::uint64_t>(outbox_.base()); }

  // Copies from the inbox to the GPU and waits for the copies.
  beeline::Outcome<void> copy_to_gpu(std::span<const DeferredRange> ranges);
  // Copies from the GPU to the outbox and waits for the copy.
  beeline::Outcome<void> copy_from_gpu(std::uint64_t offset, std::uint64_t length);

 private:
  GpuMirror(GpuCopier& copier, std::uint64_t address) noexcept
      : copier_(copier), address_(address) {}

  GpuCopier& copier_;
  const std::uint64_t address_;
  Mapping inbox_;
  Mapping outbox_;
};

}  // namespace softnic
