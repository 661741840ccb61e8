// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/gpu_mirror.h"

#include <sys/mman.h>

namespace softnic {
namespace {

using beeline::fail;
using beeline::gpu::ContextScope;

// The program's kernels may wait for the very bytes that are copied, and everything in the default
// stream waits for them.
constexpr unsigned kNoOrderWithDefaultStream = 1;

Mapping address_space(size_t length) {
  void* const base = ::mmap(nullptr, length, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return base == MAP_FAILED ? Mapping() : Mapping(base, length);
}

}  // namespace

GpuMirror::Outcome<std::unique_ptr<GpuMirror>> GpuMirror::make(const beeline::gpu::Cuda& cuda,
                                                               beeline::gpu::Ordinal gpu,
                                                               uint64_t address, size_t length) {
  std::unique_ptr<GpuMirror> mirror(new GpuMirror(cuda, gpu, address));
  mirror->inbox_ = address_space(length);
  mirror->outbox_ = address_space(length);
  if (!mirror->inbox_ || !mirror->outbox_) return fail(std::string("mmap: out of memory"));
  const ContextScope scope = BL_TRY(ContextScope::enter(cuda, gpu));
  BL_TRY(cuda.check("cuStreamCreate",
                    cuda.stream_create(&mirror->stream_, kNoOrderWithDefaultStream)));
  return mirror;
}

GpuMirror::~GpuMirror() {
  if (stream_ == nullptr) return;
  const auto scope = ContextScope::enter(cuda_, gpu_);
  if (scope) (void)cuda_.stream_destroy(stream_);
}

GpuMirror::Outcome<void> GpuMirror::bring_up(std::span<const HiddenRange> ranges) {
  const ContextScope scope = BL_TRY(ContextScope::enter(cuda_, gpu_));
  for (const HiddenRange& range : ranges) {
    BL_TRY(cuda_.check("cuMemcpyHtoDAsync",
                       cuda_.copy_to_device(address_ + range.offset, inbox_.base() + range.offset,
                                            range.length, stream_)));
  }
  return cuda_.check("cuStreamSynchronize", cuda_.stream_synchronize(stream_));
}

GpuMirror::Outcome<void> GpuMirror::fetch(uint64_t offset, uint64_t length) {
  const ContextScope scope = BL_TRY(ContextScope::enter(cuda_, gpu_));
  BL_TRY(cuda_.check("cuMemcpyDtoHAsync", cuda_.copy_to_host(outbox_.base() + offset,
                                                             address_ + offset, length, stream_)));
  return cuda_.check("cuStreamSynchronize", cuda_.stream_synchronize(stream_));
}

}  // namespace softnic
