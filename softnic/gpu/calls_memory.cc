// SPDX-License-Identifier: Apache-2.0
// The driver calls that allocate and free memory. The virtual memory calls are in calls_vmm.cc.
#include "softnic/gpu/driver.h"

namespace softnic::gpu {
extern "C" {

CuResult cuMemGetInfo_v2(std::size_t* available, std::size_t* total) {
  return enter(Call::k_cuMemGetInfo_v2, [&](Driver& driver, Context& context) {
    driver.handles.sweep();  // may free memory that only a closed handle still used
    const std::uint64_t used = used_on(context.gpu);
    const std::uint64_t all = driver.settings.memory;
    if (available != nullptr) *available = all > used ? all - used : 0;
    if (total != nullptr) *total = all;
    return CuResult::kSuccess;
  });
}

CuResult cuMemAlloc_v2(DevicePtr* out, std::size_t size) {
  return enter(Call::k_cuMemAlloc_v2, [&](Driver& driver, Context& context) {
    driver.handles.sweep();
    return driver.memory.allocate(size, driver.settings.packed, &context, context.gpu,
                                  driver.settings.memory, out);
  });
}

CuResult cuMemFree_v2(DevicePtr pointer) {
  return enter(Call::k_cuMemFree_v2, [&](Driver& driver, Context& context, auto& lock) {
    driver.wait_for_work(context, lock);
    const CuResult result = driver.memory.free(pointer);
    driver.handles.sweep();
    return result;
  });
}

CuResult cuMemGetAddressRange_v2(DevicePtr* start, std::size_t* size, DevicePtr pointer) {
  return enter(Call::k_cuMemGetAddressRange_v2, [&](Driver& driver) {
    const Range* const range = driver.memory.find(pointer);
    if (range == nullptr) return CuResult::kNotFound;
    std::uintptr_t first = range->start;
    std::size_t length = range->size;
    if (range->kind == RangeKind::kReservation) {  // of the mapping, not of the reservation
      const auto* const mapped = Memory::mapping_at(*range, pointer);
      if (mapped == nullptr) return CuResult::kNotFound;
      first = mapped->first;
      length = mapped->second.size;
    }
    if (start != nullptr) *start = first;
    if (size != nullptr) *size = length;
    return CuResult::kSuccess;
  });
}

CuResult cuMemAllocHost_v2(void** out, std::size_t size) {
  return enter(Call::k_cuMemAllocHost_v2, [&](Driver& driver, Context& context) {
    return driver.memory.allocate_host(size, 0, &context, context.gpu, out);
  });
}

CuResult cuMemHostAlloc(void** out, std::size_t size, unsigned flags) {
  return enter(Call::k_cuMemHostAlloc, [&](Driver& driver, Context& context) {
    return driver.memory.allocate_host(size, flags, &context, context.gpu, out);
  });
}

CuResult cuMemFreeHost(void* pointer) {
  return enter(Call::k_cuMemFreeHost,
               [&](Driver& driver, Context&) { return driver.memory.free_host(pointer); });
}

CuResult cuMemHostRegister_v2(void* pointer, std::size_t size, unsigned flags) {
  return enter(Call::k_cuMemHostRegister_v2, [&](Driver& driver, Context& context) {
    return driver.memory.register_host(pointer, size, flags, &context, context.gpu);
  });
}

CuResult cuMemHostUnregister(void* pointer) {
  return enter(Call::k_cuMemHostUnregister,
               [&](Driver& driver, Context&) { return driver.memory.unregister_host(pointer); });
}

CuResult cuMemHostGetDevicePointer_v2(DevicePtr* out, void* pointer, unsigned flags) {
  return enter(Call::k_cuMemHostGetDevicePointer_v2, [&](Driver& driver, Context&) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    const Range* const range = driver.memory.find(address);
    if (out == nullptr || flags != 0 || range == nullptr || range->kind != RangeKind::kHost)
      return CuResult::kInvalidValue;
    *out = address;
    return CuResult::kSuccess;
  });
}

CuResult cuMemHostGetFlags(unsigned* flags, void* pointer) {
  return enter(Call::k_cuMemHostGetFlags, [&](Driver& driver, Context&) {
    const Range* const range = driver.memory.find(reinterpret_cast<std::uintptr_t>(pointer));
    if (flags == nullptr || range == nullptr || range->kind != RangeKind::kHost ||
        range->is_registered)
      return CuResult::kInvalidValue;
    *flags = range->host_flags;
    return CuResult::kSuccess;
  });
}

}  // extern "C"

SOFTGPU_ALIAS(cuMemHostRegister, cuMemHostRegister_v2);

}  // namespace softnic::gpu
