// SPDX-License-Identifier: Apache-2.0
// A region of GPU memory that no processor can map, as that of a real GPU: the NIC works on host
// memory, and the CUDA driver copies. Two mappings as long as the region, of which pages exist
// where something was copied: what arrives is put into the inbox, what leaves is taken from the
// outbox. One for both would lose data: to fetch old bytes of the GPU would undo what has just
// arrived.
//
// Threads: none may be in two of its functions at a time (GpuMirrors sees to it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "common/base/problem.h"
#include "softnic/fabric/arena.h"
#include "softnic/fabric/mapping.h"
#include "softnic/nic/gpu_copier.h"

namespace softnic {

class GpuMirror {
 public:
  // Creates a mirror of [address, address + length), which is memory of the copier's GPU. Empty:
  // there is no address space left.
  static std::unique_ptr<GpuMirror> make(std::shared_ptr<GpuCopier> copier, std::uint64_t address,
                                         std::size_t length);

  std::uint64_t inbox() const noexcept { return reinterpret_cast<std::uint64_t>(inbox_.base()); }
  std::uint64_t outbox() const noexcept { return reinterpret_cast<std::uint64_t>(outbox_.base()); }

  // From the inbox to the GPU; done when it returns.
  beeline::Outcome<void> copy_to_gpu(std::span<const DeferredRange> ranges);
  // From the GPU to the outbox; done when it returns.
  beeline::Outcome<void> copy_from_gpu(std::uint64_t offset, std::uint64_t length);

 private:
  GpuMirror(std::shared_ptr<GpuCopier> copier, std::uint64_t address) noexcept
      : copier_(std::move(copier)), address_(address) {}

  const std::shared_ptr<GpuCopier> copier_;
  const std::uint64_t address_;
  Mapping inbox_;
  Mapping outbox_;
};

}  // namespace softnic
