// SPDX-License-Identifier: Apache-2.0
// The virtual memory calls of the driver: physical memory, address ranges, and mappings.
#include "softnic/gpu/driver.h"

namespace softnic::gpu {
namespace {

CuResult check_prop(const Driver& driver, const MemAllocationProp* prop) {
  if (prop == nullptr || prop->type != kAllocationPinned) return CuResult::kInvalidValue;
  if (prop->location.type != kLocationDevice) return CuResult::kNotSupported;
  if (driver.gpu(prop->location.id) == nullptr) return CuResult::kInvalidDevice;
  // Memory cannot be shared with other processes, and the attributes say so.
  if (prop->requested_handle_types != kHandleTypeNone) return CuResult::kNotSupported;
  const bool wants_rdma = prop->gpu_direct_rdma_capable != 0;
  return wants_rdma && !driver.settings.gdr ? CuResult::kInvalidValue : CuResult::kSuccess;
}

bool is_access(int flags) {
  return flags == kAccessNone || flags == kAccessRead || flags == kAccessReadWrite;
}

}  // namespace

extern "C" {

CuResult cuMemGetAllocationGranularity(std::size_t* out, const MemAllocationProp* prop,
                                       int option) {
  return enter(Call::k_cuMemGetAllocationGranularity, [&](Driver& driver) {
    if (out == nullptr || option < 0 || option > 1) return CuResult::kInvalidValue;
    if (const CuResult result = check_prop(driver, prop); result != CuResult::kSuccess)
      return result;
    *out = kGranularity;
    return CuResult::kSuccess;
  });
}

CuResult cuMemCreate(AllocationHandle* out, std::size_t size, const MemAllocationProp* prop,
                     unsigned long long flags) {
  return enter(Call::k_cuMemCreate, [&](Driver& driver) {
    if (out == nullptr || flags != 0) return CuResult::kInvalidValue;
    if (const CuResult result = check_prop(driver, prop); result != CuResult::kSuccess)
      return result;
    driver.handles.sweep();
    return driver.memory.create(size, *prop, driver.settings.memory, out);
  });
}

CuResult cuMemRelease(AllocationHandle handle) {
  return enter(Call::k_cuMemRelease, [&](Driver& driver) { return driver.memory.release(handle); });
}

CuResult cuMemAddressReserve(DevicePtr* out, std::size_t size, std::size_t alignment,
                             DevicePtr wanted, unsigned long long flags) {
  return enter(Call::k_cuMemAddressReserve, [&](Driver& driver) {
    if (out == nullptr || flags != 0) return CuResult::kInvalidValue;
    return driver.memory.reserve(size, alignment, wanted, out);
  });
}

CuResult cuMemAddressFree(DevicePtr start, std::size_t size) {
  return enter(Call::k_cuMemAddressFree,
               [&](Driver& driver) { return driver.memory.unreserve(start, size); });
}

CuResult cuMemMap(DevicePtr address, std::size_t size, std::size_t offset, AllocationHandle handle,
                  unsigned long long flags) {
  return enter(Call::k_cuMemMap, [&](Driver& driver) {
    if (flags != 0) return CuResult::kInvalidValue;
    return driver.memory.map(address, size, offset, handle);
  });
}

CuResult cuMemUnmap(DevicePtr address, std::size_t size) {
  return enter(Call::k_cuMemUnmap, [&](Driver& driver) {
    const CuResult result = driver.memory.unmap(address, size);
    driver.handles.sweep();
    return result;
  });
}

CuResult cuMemSetAccess(DevicePtr address, std::size_t size, const MemAccessDesc* wanted,
                        std::size_t count) {
  return enter(Call::k_cuMemSetAccess, [&](Driver& driver) {
    if (wanted == nullptr || count == 0) return CuResult::kInvalidValue;
    for (std::size_t i = 0; i < count; ++i) {
      const MemLocation& location = wanted[i].location;
      if (location.type != kLocationDevice || !is_access(wanted[i].flags))
        return CuResult::kInvalidValue;
      if (driver.gpu(location.id) == nullptr) return CuResult::kInvalidDevice;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const CuResult result =
          driver.memory.set_access(address, size, wanted[i].location.id, wanted[i].flags);
      if (result != CuResult::kSuccess) return result;
    }
    return CuResult::kSuccess;
  });
}

CuResult cuMemGetAccess(unsigned long long* out, const MemLocation* location, DevicePtr address) {
  return enter(Call::k_cuMemGetAccess, [&](Driver& driver) {
    const Range* const range = driver.memory.find(address);
    if (out == nullptr || location == nullptr || location->type != kLocationDevice ||
        range == nullptr)
      return CuResult::kInvalidValue;
    const auto* const mapped = Memory::mapping_at(*range, address);
    if (mapped == nullptr) return CuResult::kInvalidValue;
    const bool is_own = mapped->second.physical->pages->gpu() == location->id;
    *out = static_cast<unsigned long long>(is_own ? mapped->second.access : kAccessNone);
    return CuResult::kSuccess;
  });
}

CuResult cuMemGetAllocationPropertiesFromHandle(MemAllocationProp* out, AllocationHandle handle) {
  return enter(Call::k_cuMemGetAllocationPropertiesFromHandle, [&](Driver& driver) {
    const std::shared_ptr<Physical> physical = driver.memory.physical(handle);
    if (out == nullptr || !physical) return CuResult::kInvalidValue;
    *out = physical->prop;
    return CuResult::kSuccess;
  });
}

CuResult cuMemRetainAllocationHandle(AllocationHandle* out, void* address) {
  return enter(Call::k_cuMemRetainAllocationHandle, [&](Driver& driver) {
    if (out == nullptr) return CuResult::kInvalidValue;
    return driver.memory.retain(reinterpret_cast<std::uintptr_t>(address), out);
  });
}

}  // extern "C"
}  // namespace softnic::gpu
