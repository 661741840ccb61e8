// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/gpu_copier.h"

#include <limits>

namespace softnic {
namespace {

using beeline::gpu::ContextScope;
using beeline::gpu::Stream;

// A kernel of the program may wait for the bytes that are copied, and work in the default stream
// waits for that kernel.
constexpr unsigned kNoOrderWithDefaultStream = 1;
// The driver uses its highest priority if this is higher.
constexpr int kHighestPriority = std::numeric_limits<int>::min();

}  // namespace

GpuCopier::~GpuCopier() {
  if (up_ == nullptr && down_ == nullptr) return;
  const auto scope = ContextScope::enter(cuda_, gpu_);
  if (!scope) return;
  for (Stream* const stream : {up_, down_}) {
    if (stream != nullptr) (void)cuda_.stream_destroy(stream);
  }
}

beeline::Outcome<void> GpuCopier::make(Stream*& stream) const {
  if (stream != nullptr) return {};
  BL_TRY(cuda_.check(
      "cuStreamCreateWithPriority",
      cuda_.stream_create_with_priority(&stream, kNoOrderWithDefaultStream, kHighestPriority)));
  return {};
}

beeline::Outcome<void> GpuCopier::finish(Stream* stream) const {
  BL_TRY(cuda_.check("cuStreamSynchronize", cuda_.stream_synchronize(stream)));
  return {};
}

beeline::Outcome<void> GpuCopier::to_gpu(std::span<const Part> parts) {
  const ContextScope scope = BL_TRY(ContextScope::enter(cuda_, gpu_));
  BL_TRY(make(up_));
  for (const Part& part : parts) {
    BL_TRY(cuda_.check("cuMemcpyHtoDAsync",
                       cuda_.copy_to_device(part.device, part.host, part.length, up_)));
  }
  return finish(up_);
}

beeline::Outcome<void> GpuCopier::to_host(const Part& part) {
  const ContextScope scope = BL_TRY(ContextScope::enter(cuda_, gpu_));
  BL_TRY(make(down_));
  BL_TRY(cuda_.check("cuMemcpyDtoHAsync",
                     cuda_.copy_to_host(part.host, part.device, part.length, down_)));
  return finish(down_);
}

}  // namespace softnic
