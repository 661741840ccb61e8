// SPDX-License-Identifier: Apache-2.0
// Every call that softgpu exports, with its type; cuda_facts.cc compares both with cuda.h.
#pragma once

#include <cstdint>

#include "softnic/gpu/cuda_abi.h"
#include "softnic/gpu/softgpu.h"

// clang-format off
#define SOFTGPU_TYPES(X)                                                                    \
  X(cuInit, CuResult(unsigned))                                                             \
  X(cuDriverGetVersion, CuResult(int*))                                                     \
  X(cuGetErrorName, CuResult(CuResult, const char**))                                       \
  X(cuGetErrorString, CuResult(CuResult, const char**))                                     \
  X(cuGetProcAddress, CuResult(const char*, void**, int, unsigned long long))               \
  X(cuGetProcAddress_v2, CuResult(const char*, void**, int, unsigned long long, int*))      \
  X(cuDeviceGet, CuResult(Ordinal*, int))                                                   \
  X(cuDeviceGetCount, CuResult(int*))                                                       \
  X(cuDeviceGetName, CuResult(char*, int, Ordinal))                                         \
  X(cuDeviceGetUuid, CuResult(Uuid*, Ordinal))                                              \
  X(cuDeviceGetUuid_v2, CuResult(Uuid*, Ordinal))                                           \
  X(cuDeviceGetAttribute, CuResult(int*, DeviceAttribute, Ordinal))                         \
  X(cuDeviceTotalMem_v2, CuResult(std::size_t*, Ordinal))                                        \
  X(cuDeviceGetPCIBusId, CuResult(char*, int, Ordinal))                                     \
  X(cuDeviceGetByPCIBusId, CuResult(Ordinal*, const char*))                                 \
  X(cuDeviceCanAccessPeer, CuResult(int*, Ordinal, Ordinal))                                \
  X(cuDevicePrimaryCtxRetain, CuResult(Context**, Ordinal))                                 \
  X(cuDevicePrimaryCtxRelease, CuResult(Ordinal))                                           \
  X(cuDevicePrimaryCtxRelease_v2, CuResult(Ordinal))                                        \
  X(cuDevicePrimaryCtxSetFlags, CuResult(Ordinal, unsigned))                                \
  X(cuDevicePrimaryCtxSetFlags_v2, CuResult(Ordinal, unsigned))                             \
  X(cuDevicePrimaryCtxReset, CuResult(Ordinal))                                             \
  X(cuDevicePrimaryCtxReset_v2, CuResult(Ordinal))                                          \
  X(cuDevicePrimaryCtxGetState, CuResult(Ordinal, unsigned*, int*))                         \
  X(cuCtxCreate_v2, CuResult(Context**, unsigned, Ordinal))                                 \
  X(cuCtxCreate_v3, CuResult(Context**, void*, int, unsigned, Ordinal))                     \
  X(cuCtxCreate_v4, CuResult(Context**, void*, unsigned, Ordinal))                          \
  X(cuCtxDestroy_v2, CuResult(Context*))                                                    \
  X(cuCtxPushCurrent_v2, CuResult(Context*))                                                \
  X(cuCtxPopCurrent_v2, CuResult(Context**))                                                \
  X(cuCtxSetCurrent, CuResult(Context*))                                                    \
  X(cuCtxGetCurrent, CuResult(Context**))                                                   \
  X(cuCtxGetDevice, CuResult(Ordinal*))                                                     \
  X(cuCtxGetDevice_v2, CuResult(Ordinal*, Context*))                                        \
  X(cuCtxGetFlags, CuResult(unsigned*))                                                     \
  X(cuCtxGetApiVersion, CuResult(Context*, unsigned*))                                      \
  X(cuCtxSynchronize, CuResult())                                                           \
  X(cuCtxSynchronize_v2, CuResult(Context*))                                                \
  X(cuMemGetInfo_v2, CuResult(std::size_t*, std::size_t*))                                            \
  X(cuMemAlloc_v2, CuResult(DevicePtr*, std::size_t))                                            \
  X(cuMemFree_v2, CuResult(DevicePtr))                                                      \
  X(cuMemGetAddressRange_v2, CuResult(DevicePtr*, std::size_t*, DevicePtr))                      \
  X(cuMemAllocHost_v2, CuResult(void**, std::size_t))                                            \
  X(cuMemHostAlloc, CuResult(void**, std::size_t, unsigned))                                     \
  X(cuMemFreeHost, CuResult(void*))                                                         \
  X(cuMemHostRegister_v2, CuResult(void*, std::size_t, unsigned))                                \
  X(cuMemHostUnregister, CuResult(void*))                                                   \
  X(cuMemHostGetDevicePointer_v2, CuResult(DevicePtr*, void*, unsigned))                    \
  X(cuMemHostGetFlags, CuResult(unsigned*, void*))                                          \
  X(cuMemcpy, CuResult(DevicePtr, DevicePtr, std::size_t))                                       \
  X(cuMemcpyHtoD_v2, CuResult(DevicePtr, const void*, std::size_t))                              \
  X(cuMemcpyDtoH_v2, CuResult(void*, DevicePtr, std::size_t))                                    \
  X(cuMemcpyDtoD_v2, CuResult(DevicePtr, DevicePtr, std::size_t))                                \
  X(cuMemcpyAsync, CuResult(DevicePtr, DevicePtr, std::size_t, Stream*))                         \
  X(cuMemcpyHtoDAsync_v2, CuResult(DevicePtr, const void*, std::size_t, Stream*))                \
  X(cuMemcpyDtoHAsync_v2, CuResult(void*, DevicePtr, std::size_t, Stream*))                      \
  X(cuMemcpyDtoDAsync_v2, CuResult(DevicePtr, DevicePtr, std::size_t, Stream*))                  \
  X(cuMemsetD8_v2, CuResult(DevicePtr, unsigned char, std::size_t))                              \
  X(cuMemsetD16_v2, CuResult(DevicePtr, unsigned short, std::size_t))                            \
  X(cuMemsetD32_v2, CuResult(DevicePtr, unsigned, std::size_t))                                  \
  X(cuMemsetD8Async, CuResult(DevicePtr, unsigned char, std::size_t, Stream*))                   \
  X(cuMemsetD16Async, CuResult(DevicePtr, unsigned short, std::size_t, Stream*))                 \
  X(cuMemsetD32Async, CuResult(DevicePtr, unsigned, std::size_t, Stream*))                       \
  X(cuPointerGetAttribute, CuResult(void*, PointerAttribute, DevicePtr))                    \
  X(cuPointerGetAttributes, CuResult(unsigned, PointerAttribute*, void**, DevicePtr))       \
  X(cuPointerSetAttribute, CuResult(const void*, PointerAttribute, DevicePtr))              \
  X(cuMemGetHandleForAddressRange,                                                          \
    CuResult(void*, DevicePtr, std::size_t, int, unsigned long long))                            \
  X(cuFlushGPUDirectRDMAWrites, CuResult(int, int))                                         \
  X(cuMemGetAllocationGranularity, CuResult(std::size_t*, const MemAllocationProp*, int))        \
  X(cuMemCreate,                                                                            \
    CuResult(AllocationHandle*, std::size_t, const MemAllocationProp*, unsigned long long))      \
  X(cuMemRelease, CuResult(AllocationHandle))                                               \
  X(cuMemAddressReserve,                                                                    \
    CuResult(DevicePtr*, std::size_t, std::size_t, DevicePtr, unsigned long long))                    \
  X(cuMemAddressFree, CuResult(DevicePtr, std::size_t))                                          \
  X(cuMemMap, CuResult(DevicePtr, std::size_t, std::size_t, AllocationHandle, unsigned long long))    \
  X(cuMemUnmap, CuResult(DevicePtr, std::size_t))                                                \
  X(cuMemSetAccess, CuResult(DevicePtr, std::size_t, const MemAccessDesc*, std::size_t))              \
  X(cuMemGetAccess, CuResult(unsigned long long*, const MemLocation*, DevicePtr))           \
  X(cuMemGetAllocationPropertiesFromHandle, CuResult(MemAllocationProp*, AllocationHandle)) \
  X(cuMemRetainAllocationHandle, CuResult(AllocationHandle*, void*))                        \
  X(cuStreamCreate, CuResult(Stream**, unsigned))                                           \
  X(cuStreamCreateWithPriority, CuResult(Stream**, unsigned, int))                          \
  X(cuCtxGetStreamPriorityRange, CuResult(int*, int*))                                      \
  X(cuLaunchHostFunc, CuResult(Stream*, void (*)(void*), void*))                            \
  X(cuStreamDestroy_v2, CuResult(Stream*))                                                  \
  X(cuStreamSynchronize, CuResult(Stream*))                                                 \
  X(cuStreamQuery, CuResult(Stream*))                                                       \
  X(cuStreamWaitEvent, CuResult(Stream*, GpuEvent*, unsigned))                              \
  X(cuEventCreate, CuResult(GpuEvent**, unsigned))                                          \
  X(cuEventDestroy_v2, CuResult(GpuEvent*))                                                 \
  X(cuEventRecord, CuResult(GpuEvent*, Stream*))                                            \
  X(cuEventQuery, CuResult(GpuEvent*))                                                      \
  X(cuEventSynchronize, CuResult(GpuEvent*))                                                \
  X(cuEventElapsedTime, CuResult(float*, GpuEvent*, GpuEvent*))                             \
  X(cuEventElapsedTime_v2, CuResult(float*, GpuEvent*, GpuEvent*))                          \
  X(softgpu_dmabuf, int(int, int*, std::uint64_t*, std::uint64_t*))                                   \
  X(softgpu_peermem, int(const void*, std::size_t, int*, std::uint64_t*))                             \
  X(softgpu_set, const char*(const char*))                                                  \
  X(softgpu_read, int(const void*, void*, std::size_t))                                          \
  X(softgpu_write, int(void*, const void*, std::size_t))                                         \
  X(softgpu_calls, std::uint64_t(const char*))                                                   \
  X(softgpu_pinned, std::uint64_t())                                                             \
  X(softgpu_open_handles, std::uint64_t())                                                  \
  X(softgpu_at_flush, void(void (*)()))
// clang-format on

namespace softnic::gpu {

template <class Function>
using PointerTo = Function*;

// The functions of a library that was opened; null where it has none.
struct Calls {
#define SOFTGPU_MEMBER(name, ...) PointerTo<__VA_ARGS__> name = nullptr;
  SOFTGPU_TYPES(SOFTGPU_MEMBER)
#undef SOFTGPU_MEMBER
};

}  // namespace softnic::gpu
