// SPDX-License-Identifier: Apache-2.0
// Copies between the host and one GPU, for all mirrors of that GPU: one stream for each direction,
// created at first use. A GPU has few hardware queues, which streams share. With a stream for each
// mirror, a copy would sooner or later be queued behind a kernel that waits for the copied bytes. A
// priority of their own keeps these streams out of the queues of streams with other priorities.
//
// Threads: only one thread may call its functions at a time (GpuMirrors ensures that).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/base/problem.h"
#include "common/gpu/memory.h"

namespace softnic {

class GpuCopier {
 public:
  // `cuda` must outlive this object.
  GpuCopier(const beeline::gpu::Cuda& cuda, beeline::gpu::Ordinal gpu) noexcept
      : cuda_(cuda), gpu_(gpu) {}
  ~GpuCopier();
  GpuCopier(const GpuCopier&) = delete;
  GpuCopier& operator=(const GpuCopier&) = delete;

  struct Part {
    std::uint64_t device;
    std::byte* host;
    std::size_t length;
  };
  // The copies are done when these functions return.
  beeline::Outcome<void> to_gpu(std::span<const Part> parts);
  beeline::Outcome<void> to_host(const Part& part);

 private:
  beeline::Outcome<void> make(beeline::gpu::Stream*& stream) const;
  beeline::Outcome<void> finish(beeline::gpu::Stream* stream) const;

  const beeline::gpu::Cuda& cuda_;
  const beeline::gpu::Ordinal gpu_;
  beeline::gpu::Stream* up_ = nullptr;
  beeline::gpu::Stream* down_ = nullptr;
};

}  // namespace softnic
