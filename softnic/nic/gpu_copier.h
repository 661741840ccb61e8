// SPDX-License-Identifier: Apache-2.0
// Copies between the host and one GPU, for all mirrors of that GPU, in a CUDA context of its own.
// In the program's context, a copy would wait for each call of the program that holds the context's
// lock until a kernel has ended (cudaFree, a copy to pageable memory, the first launch of a
// kernel), and that kernel may wait for the copied bytes. Streams of one context share few hardware
// queues, too.
//
// Threads: only one thread may call its functions at a time (GpuMirrors ensures that).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/base/problem.h"
#include "common/gpu/memory.h"

namespace softnic {

class GpuCopier {
 public:
  // Creates the context. `cuda` must outlive the copier.
  static beeline::Outcome<std::unique_ptr<GpuCopier>> make(const beeline::gpu::Cuda& cuda,
                                                           beeline::gpu::Ordinal gpu);
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
  explicit GpuCopier(const beeline::gpu::Cuda& cuda) noexcept : cuda_(cuda) {}
  beeline::Outcome<void> make_stream(beeline::gpu::Stream*& stream) const;
  beeline::Outcome<void> finish(beeline::gpu::Stream* stream) const;

  const beeline::gpu::Cuda& cuda_;
  beeline::gpu::Context* context_ = nullptr;
  beeline::gpu::Stream* up_ = nullptr;
  beeline::gpu::Stream* down_ = nullptr;
};

}  // namespace softnic
