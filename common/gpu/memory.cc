// SPDX-License-Identifier: Apache-2.0
#include "common/gpu/memory.h"

namespace beeline::gpu {
namespace {

constexpr unsigned kNonBlocking = 1;  // does not synchronize with the default stream
constexpr int kRelaxed = 2;           // CU_STREAM_CAPTURE_MODE_RELAXED

// Whether the driver may have refused the call because it does not know the flag.
bool is_unknown_flag(CuResult result) {
  return result == CuResult::kInvalidValue || result == CuResult::kNotSupported;
}

}  // namespace

OutsideCapture::OutsideCapture(const Cuda& cuda) noexcept : cuda_(nullptr), mode_(kRelaxed) {
  if (cuda.exchange_capture_mode == nullptr) return;
  if (cuda.exchange_capture_mode(&mode_) == CuResult::kSuccess) cuda_ = &cuda;
}

OutsideCapture::~OutsideCapture() {
  if (cuda_ != nullptr) (void)cuda_->exchange_capture_mode(&mode_);
}

Outcome<ContextScope> ContextScope::enter(const Cuda& cuda, Ordinal ordinal) {
  OutsideCapture capture(cuda);
  Context* context = nullptr;
  BL_TRY(cuda.check("cuDevicePrimaryCtxRetain", cuda.primary_retain(&context, ordinal)));
  if (auto pushed = cuda.check("cuCtxPushCurrent", cuda.context_push(context)); !pushed) {
    (void)cuda.primary_release(ordinal);
    return fail(pushed.error());
  }
  return ContextScope(cuda, ordinal, std::move(capture));
}

ContextScope::~ContextScope() {
  if (cuda_ == nullptr) return;
  Context* ours = nullptr;
  (void)cuda_->context_pop(&ours);
  (void)cuda_->primary_release(ordinal_);
}

Outcome<Memory> Memory::allocate(const Cuda& cuda, std::size_t bytes) {
  Memory memory(cuda, bytes);
  BL_TRY(cuda.check("cuMemAlloc", cuda.memory_allocate(&memory.address_, bytes)));
  BL_TRY(cuda.check("cuStreamCreate", cuda.stream_create(&memory.stream_, kNonBlocking)));
  return memory;
}

Memory::~Memory() {
  if (stream_ != nullptr) (void)cuda_->stream_destroy(stream_);
  if (address_ != 0) (void)cuda_->memory_free(address_);
}

Outcome<void> Memory::write(const void* from, std::size_t bytes) {
  BL_TRY(cuda_->check("cuMemcpyHtoDAsync", cuda_->copy_to_device(address_, from, bytes, stream_)));
  return cuda_->check("cuStreamSynchronize", cuda_->stream_synchronize(stream_));
}

Outcome<void> Memory::read(void* to, std::size_t bytes) {
  BL_TRY(cuda_->check("cuMemcpyDtoHAsync", cuda_->copy_to_host(to, address_, bytes, stream_)));
  return cuda_->check("cuStreamSynchronize", cuda_->stream_synchronize(stream_));
}

// Drivers before CUDA 12.8 do not know the flag for PCIe, and always use PCIe.
Outcome<UniqueFd> export_dmabuf(const Cuda& cuda, const Gpu& gpu, std::uintptr_t start,
                                std::size_t bytes) {
  if (!gpu.dmabuf)
    return fail(std::string("the driver cannot export this GPU's memory as dma-bufs"));
  int fd = -1;
  const auto ask = [&](unsigned long long flags) {
    return cuda.get_range_handle(&fd, start, bytes, cuda_abi::kRangeHandleDmaBufFd, flags);
  };
  CuResult result = ask(gpu.coherent ? cuda_abi::kRangeFlagPcie : 0);
  if (gpu.coherent && is_unknown_flag(result)) result = ask(0);
  BL_TRY(cuda.check("cuMemGetHandleForAddressRange", result));
  return UniqueFd(fd);
}

}  // namespace beeline::gpu
