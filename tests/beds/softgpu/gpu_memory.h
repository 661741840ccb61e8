// SPDX-License-Identifier: Apache-2.0
//
// GPU memory that is registered with a softnic device, for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <ostream>
#include <vector>

#include "common/base/fd.h"
#include "tests/beds/softgpu/process.h"
#include "tests/support/peer_group.h"
#include "tests/support/verbs_extras.h"

namespace beeline::test {

using Bytes = std::vector<std::uint8_t>;

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kSize = (std::size_t{64} << 10) + 104;
inline constexpr Wire kAtomicWire{.access = kAtomicAccess};

enum class Way { kPeermem, kDmabuf };
inline std::ostream& operator<<(std::ostream& out, Way way) {
  return out << (way == Way::kPeermem ? "peer memory" : "dma-buf");
}
inline Way any_way() { return GENERATE(Way::kPeermem, Way::kDmabuf); }

// A part of an allocation, registered. A handle has whole pages, and the registered part is within
// it.
struct GpuMemory {
  GpuMemory(Cuda& the_cuda, ibv_pd* pd, Way way, std::size_t offset = 0,
            std::size_t the_size = kSize)
      : cuda(the_cuda), size(the_size) {
    allocation = cuda.allocate(offset + size + kPage);
    CU_MUST(cuda, kSuccess, cuda.cuMemsetD8_v2(allocation, 0, offset + size + kPage));
    start = allocation + offset;
    if (way == Way::kPeermem) {
      mr.reset(ibv_reg_mr(pd, pointer(start), size, kAtomicAccess));
    } else {
      const std::size_t skipped = offset / kPage * kPage;
      const std::size_t pages = (offset - skipped + size + kPage - 1) / kPage * kPage;
      const UniqueFd handle(cuda.handle(allocation + skipped, pages));
      mr.reset(ibv_reg_dmabuf_mr(pd, offset - skipped, size, start, handle.get(), kAtomicAccess));
    }
    BL_MUST(mr != nullptr);
    region = {start, static_cast<std::uint32_t>(size), mr->lkey, mr->rkey};
  }

  Region part(std::size_t at, std::size_t length) const {
    return region.moved(static_cast<std::int64_t>(at), static_cast<std::uint32_t>(length));
  }
  Region all() const { return region; }
  // The bytes on the GPU.
  Bytes look(std::size_t at, std::size_t length) const {
    Bytes bytes(length);
    BL_MUST_OK(cuda.softgpu_read(pointer(start + at), bytes.data(), length));
    return bytes;
  }
  Bytes look() const { return look(0, size); }
  void put(std::size_t at, const Bytes& bytes) const {
    BL_MUST_OK(cuda.softgpu_write(pointer(start + at), bytes.data(), bytes.size()));
  }
  bool has(std::uint32_t seed) const { return has_pattern(look(), seed); }

  Cuda& cuda;
  std::size_t size;
  DevicePtr allocation = 0;
  DevicePtr start = 0;
  MrPtr mr;
  Region region;
};

inline Bytes pattern(std::size_t length, std::uint32_t seed) {
  Bytes bytes(length);
  fill_pattern(bytes, seed);
  return bytes;
}
inline bool is_zero(const Bytes& bytes) { return bytes == Bytes(bytes.size()); }

inline Bytes word(std::uint64_t value) {
  Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace beeline::test
