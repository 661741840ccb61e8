// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/rank_gpu.h"

#include <fmt/format.h>

namespace beeline::perf {
namespace {

constexpr unsigned kNonBlocking = 1;  // no order with the default stream

std::string without_cuda(const gpu::NoCuda& reason) {
  const char* const fix =
      reason.absent
          ? "run where nvidia-smi shows a GPU and CUDA_VISIBLE_DEVICES does not hide it, "
            "or under \"softnic run --softgpu\" (package beeline-softnic) with a fabric file that "
            "has GPUs or with SOFTGPU=gpus=2, or choose --memory host"
          : "see whether nvidia-smi works, or choose --memory host";
  return fmt::format("there is no GPU memory: {}; {}", reason.why, fix);
}

}  // namespace

Outcome<std::unique_ptr<RankGpu>> RankGpu::open(int rank) {
  const Result<gpu::Cuda, gpu::NoCuda> cuda = gpu::load_cuda();
  if (!cuda) return fail(without_cuda(cuda.error()));
  std::unique_ptr<RankGpu> opened(new RankGpu(*cuda));
  const Outcome<bool> started = opened->start(rank);
  if (!started) return fail(fmt::format("GPU {}: {}", rank % cuda->gpus, started.error().text));
  return opened;
}

Outcome<bool> RankGpu::start(int rank) {
  gpu::Ordinal ordinal = 0;
  BL_TRY(cuda_.check("cuDeviceGet", cuda_.device_get(&ordinal, rank % cuda_.gpus)));
  about_ = BL_TRY(gpu::read_gpu(cuda_, ordinal));
  context_.emplace(BL_TRY(enter()));
  BL_TRY(cuda_.check("cuStreamCreate", cuda_.stream_create(&copies_, kNonBlocking)));
  return true;
}

RankGpu::~RankGpu() {
  if (copies_ != nullptr) (void)cuda_.stream_destroy(copies_);
}

NetResult<gpu::DevicePtr> RankGpu::allocate(size_t bytes) const noexcept {
  gpu::DevicePtr memory = 0;
  BL_TRY(succeeded("cuMemAlloc", cuda_.memory_allocate(&memory, bytes)));
  return memory;
}

NetResult<void> RankGpu::copy_in(gpu::DevicePtr to, const void* from, size_t bytes) const noexcept {
  BL_TRY(succeeded("cuMemcpyHtoDAsync", cuda_.copy_to_device(to, from, bytes, copies_)));
  return finish_copy();
}

NetResult<void> RankGpu::copy_out(void* to, gpu::DevicePtr from, size_t bytes) const noexcept {
  BL_TRY(succeeded("cuMemcpyDtoHAsync", cuda_.copy_to_host(to, from, bytes, copies_)));
  return finish_copy();
}

NetResult<void> RankGpu::finish_copy() const noexcept {
  return succeeded("cuStreamSynchronize", cuda_.stream_synchronize(copies_));
}

// The driver's names of errors are constants, so the pointers stay valid.
NetResult<void> RankGpu::succeeded(const char* call, gpu::CuResult result) const noexcept {
  if (result == gpu::CuResult::kSuccess) return {};
  const char* name = nullptr;
  (void)cuda_.get_error_name(result, &name);
  return fail(NetFailure{.call = call,
                         .result = ncclUnhandledCudaError,
                         .complaint = name != nullptr ? name : "an error without a name"});
}

}  // namespace beeline::perf
