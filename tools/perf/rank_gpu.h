// SPDX-License-Identifier: Apache-2.0
//
// The GPU of a rank, which an application of NCCL would choose with cudaSetDevice. The processor
// does not access its memory directly; the driver copies.
//
// Threads: every thread that is in the GPU's context may call: the one that opened the GPU, and
// those that called enter().
#pragma once

#include <cstdint>
#include <memory>

#include "common/gpu/memory.h"
#include "tools/cli/exit_status.h"
#include "tools/perf/net_failure.h"

namespace beeline::perf {

class RankGpu {
 public:
  // Opens GPU `rank` modulo the number of visible GPUs. Its context stays current in the calling
  // thread, and the same thread has to destroy this object.
  static Outcome<std::unique_ptr<RankGpu>> open(int rank);
  ~RankGpu();
  RankGpu(const RankGpu&) = delete;
  RankGpu& operator=(const RankGpu&) = delete;

  const gpu::Gpu& about() const noexcept { return about_; }
  Outcome<gpu::ContextScope> enter() const {
    return BL_TRY(gpu::ContextScope::enter(cuda_, about_.ordinal));
  }

  NetResult<gpu::DevicePtr> allocate(size_t bytes) const noexcept;
  void free(gpu::DevicePtr memory) const noexcept { (void)cuda_.memory_free(memory); }
  // The copy is complete when they return.
  NetResult<void> copy_in(gpu::DevicePtr to, const void* from, size_t bytes) const noexcept;
  NetResult<void> copy_out(void* to, gpu::DevicePtr from, size_t bytes) const noexcept;
  // A dma-buf of whole host pages.
  Outcome<UniqueFd> export_pages(const void* start, size_t bytes) const {
    return BL_TRY(
        gpu::export_dmabuf(cuda_, about_, reinterpret_cast<std::uintptr_t>(start), bytes));
  }

 private:
  explicit RankGpu(const gpu::Cuda& cuda) : cuda_(cuda) {}
  Outcome<bool> start(int rank);
  NetResult<void> succeeded(const char* call, gpu::CuResult result) const noexcept;
  NetResult<void> finish_copy() const noexcept;

  const gpu::Cuda cuda_;
  gpu::Gpu about_;
  std::optional<gpu::ContextScope> context_;
  gpu::Stream* copies_ = nullptr;  // its own: nobody else's work is waited for
};

}  // namespace beeline::perf
