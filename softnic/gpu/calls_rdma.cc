// SPDX-License-Identifier: Apache-2.0
// The driver calls for GPUDirect RDMA: handles of address ranges, and the flush of writes.
#include <cstring>

#include "softnic/gpu/driver.h"

namespace softnic::gpu {
namespace {

constexpr int kPcieFlagSince = 12080;

CuResult check_flags(const Settings& settings, unsigned long long flags) {
  const bool is_pcie = (flags & kRangeFlagPcie) != 0;
  if ((flags & ~kRangeFlagPcie) != 0) return CuResult::kInvalidValue;
  if (is_pcie && settings.driver < kPcieFlagSince) return CuResult::kInvalidValue;
  // A coherent GPU has two paths to its memory, and a NIC on PCIe needs the one through BAR1. Other
  // GPUs have only that path.
  return is_pcie == settings.coherent ? CuResult::kSuccess : CuResult::kNotSupported;
}

// A range of whole host pages of one allocation, including those in which it begins and ends.
CuResult find_piece(Driver& driver, DevicePtr address, std::size_t size, Piece* out) {
  if (size == 0 || address % host_page() != 0 || size % host_page() != 0)
    return CuResult::kInvalidValue;
  const Range* const range = driver.memory.find(address);
  if (range != nullptr && range->kind == RangeKind::kHost) return CuResult::kNotSupported;
  std::vector<Piece> pieces = driver.memory.pieces_of_pages(address, size);
  if (pieces.size() != 1) return CuResult::kInvalidValue;
  *out = std::move(pieces.front());
  return CuResult::kSuccess;
}

}  // namespace

extern "C" {

CuResult cuMemGetHandleForAddressRange(void* handle, DevicePtr address, std::size_t size, int type,
                                       unsigned long long flags) {
  return enter(Call::k_cuMemGetHandleForAddressRange, [&](Driver& driver) {
    const Settings& settings = driver.settings;
    if (handle == nullptr || type != kRangeHandleDmaBufFd) return CuResult::kInvalidValue;
    if (!settings.dmabuf || !settings.gdr) return CuResult::kNotSupported;
    if (const CuResult result = check_flags(settings, flags); result != CuResult::kSuccess)
      return result;
    Piece piece;
    if (const CuResult result = find_piece(driver, address, size, &piece);
        result != CuResult::kSuccess)
      return result;
    const beeline::Result<int, int> fd = driver.handles.make(std::move(piece));
    if (!fd) return CuResult::kOperatingSystem;
    std::memcpy(handle, &*fd, sizeof *fd);
    return CuResult::kSuccess;
  });
}

CuResult cuFlushGPUDirectRDMAWrites(int target, int scope) {
  const CuResult result = enter(Call::k_cuFlushGPUDirectRDMAWrites, [&](Driver& driver, Context&) {
    if (target != 0 || (scope != kFlushToOwner && scope != kFlushToAllDevices))
      return CuResult::kInvalidValue;
    return (driver.settings.flush & kFlushOptionHost) != 0 ? CuResult::kSuccess
                                                           : CuResult::kNotSupported;
  });
  auto* const at_flush = Driver::get().at_flush.load();
  if (result == CuResult::kSuccess && at_flush != nullptr) at_flush();  // without the lock
  return result;
}

}  // extern "C"
}  // namespace softnic::gpu
