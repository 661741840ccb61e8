// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/gpu_mirror.h"

#include <sys/mman.h>

#include <vector>

namespace softnic {
namespace {

Mapping address_space(std::size_t length) {
  void* const base = ::mmap(nullptr, length, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return base == MAP_FAILED ? Mapping() : Mapping(base, length);
}

}  // namespace

std::unique_ptr<GpuMirror> GpuMirror::make(GpuCopier& copier, std::uint64_t address,
                                           std::size_t length) {
  std::unique_ptr<GpuMirror> mirror(new GpuMirror(copier, address));
  mirror->inbox_ = address_space(length);
  mirror->outbox_ = address_space(length);
  return mirror->inbox_ && mirror->outbox_ ? std::move(mirror) : nullptr;
}

beeline::Outcome<void> GpuMirror::copy_to_gpu(std::span<const DeferredRange> ranges) {
  std::vector<GpuCopier::Part> parts;
  parts.reserve(ranges.size());
  for (const DeferredRange& range : ranges) {
    parts.push_back({address_ + range.offset, inbox_.base() + range.offset, range.length});
  }
  return copier_.to_gpu(parts);
}

beeline::Outcome<void> GpuMirror::copy_from_gpu(std::uint64_t offset, std::uint64_t length) {
  return copier_.to_host({address_ + offset, outbox_.base() + offset, length});
}

}  // namespace softnic
