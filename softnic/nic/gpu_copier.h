// SPDX-License-Identifier: Apache-2.0
// The copies between host and one GPU, for all mirrors of that GPU: one stream for each direction,
// made at first use. A GPU has few hardware queues and streams share them, so that a stream of each
// mirror would sooner or later stand behind a kernel that waits for the very bytes to be copied. A
// priority of their own parts them from the program's streams of other priorities.
//
// Threads: none may be in two of its functions at a time (GpuMirrors sees to it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "plugin/base/result.h"
#include "plugin/gpu/memory.h"

namespace softnic {

class GpuCopier {
 public:
  template <class T>
  using Outcome = beeline::Result<T, std::string>;

  // The driver's table outlives it.
  GpuCopier(const beeline::gpu::Cuda& cuda, beeline::gpu::Ordinal gpu) noexcept
      : cuda_(cuda), gpu_(gpu) {}
  ~GpuCopier();
  GpuCopier(const GpuCopier&) = delete;
  GpuCopier& operator=(const GpuCopier&) = delete;

  struct Part {
    uint64_t device;
    std::byte* host;
    size_t length;
  };
  // Done when they return.
  Outcome<void> to_gpu(std::span<const Part> parts);
  Outcome<void> to_host(const Part& part);

 private:
  Outcome<void> make(beeline::gpu::Stream*& stream) const;
  Outcome<void> finish(beeline::gpu::Stream* stream) const;

  const beeline::gpu::Cuda& cuda_;
  const beeline::gpu::Ordinal gpu_;
  beeline::gpu::Stream* up_ = nullptr;
  beeline::gpu::Stream* down_ = nullptr;
};

}  // namespace softnic
