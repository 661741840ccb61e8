// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/gpu_copier.h"

#include <limits>
#include <utility>

namespace softnic {
namespace {

namespace gpu = beeline::gpu;
using beeline::fail;
using beeline::Outcome;

// Work in the context's default stream would wait for these streams.
constexpr unsigned kNoOrderWithDefaultStream = 1;
// The driver uses its highest priority if this is higher.
constexpr int kHighestPriority = std::numeric_limits<int>::min();

// Makes a context current in this thread as long as it exists.
class CurrentContext {
 public:
  static Outcome<CurrentContext> enter(const gpu::Cuda& cuda, gpu::Context* context) {
    gpu::OutsideCapture capture(cuda);
    BL_TRY(cuda.check("cuCtxPushCurrent", cuda.context_push(context)));
    return CurrentContext(cuda, std::move(capture));
  }
  CurrentContext(CurrentContext&& other) noexcept
      : capture_(std::move(other.capture_)), cuda_(std::exchange(other.cuda_, nullptr)) {}
  CurrentContext& operator=(CurrentContext&&) = delete;
  ~CurrentContext() {
    gpu::Context* ours = nullptr;
    if (cuda_ != nullptr) (void)cuda_->context_pop(&ours);
  }

 private:
  CurrentContext(const gpu::Cuda& cuda, gpu::OutsideCapture capture) noexcept
      : capture_(std::move(capture)), cuda_(&cuda) {}

  gpu::OutsideCapture capture_;
  const gpu::Cuda* cuda_;
};

}  // namespace

Outcome<std::unique_ptr<GpuCopier>> GpuCopier::make(const gpu::Cuda& cuda, gpu::Ordinal gpu) {
  if (cuda.context_create == nullptr || cuda.context_destroy == nullptr)
    return fail(cuda.library + " has no cuCtxCreate");
  const gpu::OutsideCapture capture(cuda);
  std::unique_ptr<GpuCopier> copier(new GpuCopier(cuda));
  BL_TRY(cuda.check("cuCtxCreate", cuda.context_create(&copier->context_, 0, gpu)));
  // It is current now.
  auto up = copier->make_stream(copier->up_);
  auto down = copier->make_stream(copier->down_);
  gpu::Context* ours = nullptr;
  (void)cuda.context_pop(&ours);
  BL_TRY(std::move(up));
  BL_TRY(std::move(down));
  return copier;
}

// Destroying a context destroys its streams.
GpuCopier::~GpuCopier() {
  if (context_ != nullptr) (void)cuda_.context_destroy(context_);
}

Outcome<void> GpuCopier::make_stream(gpu::Stream*& stream) const {
  return cuda_.check(
      "cuStreamCreateWithPriority",
      cuda_.stream_create_with_priority(&stream, kNoOrderWithDefaultStream, kHighestPriority));
}

Outcome<void> GpuCopier::finish(gpu::Stream* stream) const {
  return cuda_.check("cuStreamSynchronize", cuda_.stream_synchronize(stream));
}

Outcome<void> GpuCopier::to_gpu(std::span<const Part> parts) {
  const CurrentContext current = BL_TRY(CurrentContext::enter(cuda_, context_));
  for (const Part& part : parts) {
    BL_TRY(cuda_.check("cuMemcpyHtoDAsync",
                       cuda_.copy_to_device(part.device, part.host, part.length, up_)));
  }
  return finish(up_);
}

Outcome<void> GpuCopier::to_host(const Part& part) {
  const CurrentContext current = BL_TRY(CurrentContext::enter(cuda_, context_));
  BL_TRY(cuda_.check("cuMemcpyDtoHAsync",
                     cuda_.copy_to_host(part.host, part.device, part.length, down_)));
  return finish(down_);
}

}  // namespace softnic
