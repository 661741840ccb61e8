// SPDX-License-Identifier: Apache-2.0
// The list of driver calls: the exported symbol, its name in cuda.h, and the CUDA version that
// introduced this form. Faults, cuGetProcAddress and the driver version all use this list.
// Per-thread forms (_ptsz, _ptds) are aliases and not listed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

// clang-format off
#define SOFTGPU_CALLS(X)                                                       \
  X(cuInit, cuInit, 2000)                                                      \
  X(cuDriverGetVersion, cuDriverGetVersion, 2020)                              \
  X(cuGetErrorName, cuGetErrorName, 6000)                                      \
  X(cuGetErrorString, cuGetErrorString, 6000)                                  \
  X(cuGetProcAddress, cuGetProcAddress, 11030)                                 \
  X(cuGetProcAddress_v2, cuGetProcAddress, 12000)                              \
  X(cuDeviceGet, cuDeviceGet, 2000)                                            \
  X(cuDeviceGetCount, cuDeviceGetCount, 2000)                                  \
  X(cuDeviceGetName, cuDeviceGetName, 2000)                                    \
  X(cuDeviceGetUuid, cuDeviceGetUuid, 9020)                                    \
  X(cuDeviceGetUuid_v2, cuDeviceGetUuid, 11040)                                \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000)                          \
  X(cuDeviceTotalMem_v2, cuDeviceTotalMem, 3020)                               \
  X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010)                            \
  X(cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId, 4010)                        \
  X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000)                        \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000)                  \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease, 7000)                \
  X(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, 11000)            \
  X(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags, 7000)              \
  X(cuDevicePrimaryCtxSetFlags_v2, cuDevicePrimaryCtxSetFlags, 11000)          \
  X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 7000)                    \
  X(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, 11000)                \
  X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000)              \
  X(cuCtxCreate_v2, cuCtxCreate, 3020)                                         \
  X(cuCtxCreate_v3, cuCtxCreate, 11040)                                        \
  X(cuCtxCreate_v4, cuCtxCreate, 12050)                                        \
  X(cuCtxDestroy_v2, cuCtxDestroy, 4000)                                       \
  X(cuCtxPushCurrent_v2, cuCtxPushCurrent, 4000)                               \
  X(cuCtxPopCurrent_v2, cuCtxPopCurrent, 4000)                                 \
  X(cuCtxSetCurrent, cuCtxSetCurrent, 4000)                                    \
  X(cuCtxGetCurrent, cuCtxGetCurrent, 4000)                                    \
  X(cuCtxGetDevice, cuCtxGetDevice, 2000)                                      \
  X(cuCtxGetDevice_v2, cuCtxGetDevice, 13000)                                  \
  X(cuCtxGetFlags, cuCtxGetFlags, 7000)                                        \
  X(cuCtxGetApiVersion, cuCtxGetApiVersion, 3020)                              \
  X(cuCtxSynchronize, cuCtxSynchronize, 2000)                                  \
  X(cuCtxSynchronize_v2, cuCtxSynchronize, 13000)                              \
  X(cuMemGetInfo_v2, cuMemGetInfo, 3020)                                       \
  X(cuMemAlloc_v2, cuMemAlloc, 3020)                                           \
  X(cuMemFree_v2, cuMemFree, 3020)                                             \
  X(cuMemGetAddressRange_v2, cuMemGetAddressRange, 3020)                       \
  X(cuMemAllocHost_v2, cuMemAllocHost, 3020)                                   \
  X(cuMemHostAlloc, cuMemHostAlloc, 2020)                                      \
  X(cuMemFreeHost, cuMemFreeHost, 2000)                                        \
  X(cuMemHostRegister_v2, cuMemHostRegister, 6050)                             \
  X(cuMemHostUnregister, cuMemHostUnregister, 4000)                            \
  X(cuMemHostGetDevicePointer_v2, cuMemHostGetDevicePointer, 3020)             \
  X(cuMemHostGetFlags, cuMemHostGetFlags, 2030)                                \
  X(cuMemcpy, cuMemcpy, 4000)                                                  \
  X(cuMemcpyHtoD_v2, cuMemcpyHtoD, 3020)                                       \
  X(cuMemcpyDtoH_v2, cuMemcpyDtoH, 3020)                                       \
  X(cuMemcpyDtoD_v2, cuMemcpyDtoD, 3020)                                       \
  X(cuMemcpyAsync, cuMemcpyAsync, 4000)                                        \
  X(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync, 3020)                             \
  X(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync, 3020)                             \
  X(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync, 3020)                             \
  X(cuMemsetD8_v2, cuMemsetD8, 3020)                                           \
  X(cuMemsetD16_v2, cuMemsetD16, 3020)                                         \
  X(cuMemsetD32_v2, cuMemsetD32, 3020)                                         \
  X(cuMemsetD8Async, cuMemsetD8Async, 3020)                                    \
  X(cuMemsetD16Async, cuMemsetD16Async, 3020)                                  \
  X(cuMemsetD32Async, cuMemsetD32Async, 3020)                                  \
  X(cuPointerGetAttribute, cuPointerGetAttribute, 4000)                        \
  X(cuPointerGetAttributes, cuPointerGetAttributes, 7000)                      \
  X(cuPointerSetAttribute, cuPointerSetAttribute, 6000)                        \
  X(cuMemGetHandleForAddressRange, cuMemGetHandleForAddressRange, 11070)       \
  X(cuFlushGPUDirectRDMAWrites, cuFlushGPUDirectRDMAWrites, 11030)             \
  X(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity, 10020)       \
  X(cuMemCreate, cuMemCreate, 10020)                                           \
  X(cuMemRelease, cuMemRelease, 10020)                                         \
  X(cuMemAddressReserve, cuMemAddressReserve, 10020)                           \
  X(cuMemAddressFree, cuMemAddressFree, 10020)                                 \
  X(cuMemMap, cuMemMap, 10020)                                                 \
  X(cuMemUnmap, cuMemUnmap, 10020)                                             \
  X(cuMemSetAccess, cuMemSetAccess, 10020)                                     \
  X(cuMemGetAccess, cuMemGetAccess, 10020)                                     \
  X(cuMemGetAllocationPropertiesFromHandle, cuMemGetAllocationPropertiesFromHandle, 10020) \
  X(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, 11000)           \
  X(cuStreamCreate, cuStreamCreate, 2000)                                      \
  X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050)              \
  X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050)            \
  X(cuLaunchHostFunc, cuLaunchHostFunc, 10000)                                 \
  X(cuStreamDestroy_v2, cuStreamDestroy, 4000)                                 \
  X(cuStreamSynchronize, cuStreamSynchronize, 2000)                            \
  X(cuStreamQuery, cuStreamQuery, 2000)                                        \
  X(cuStreamWaitEvent, cuStreamWaitEvent, 3020)                                \
  X(cuEventCreate, cuEventCreate, 2000)                                        \
  X(cuEventDestroy_v2, cuEventDestroy, 4000)                                   \
  X(cuEventRecord, cuEventRecord, 2000)                                        \
  X(cuEventQuery, cuEventQuery, 2000)                                          \
  X(cuEventSynchronize, cuEventSynchronize, 2000)                              \
  X(cuEventElapsedTime, cuEventElapsedTime, 2000)                              \
  X(cuEventElapsedTime_v2, cuEventElapsedTime, 12080)
// clang-format on

namespace softnic::gpu {

#define SOFTGPU_CALL_NAME(symbol, base, version) k_##symbol,
enum class Call : std::uint8_t { SOFTGPU_CALLS(SOFTGPU_CALL_NAME) };
#undef SOFTGPU_CALL_NAME

struct CallRow {
  const char* symbol;
  std::string_view base;
  int since;
};

#define SOFTGPU_CALL_ROW(symbol, base, version) CallRow{#symbol, #base, version},
inline constexpr std::array kCalls{SOFTGPU_CALLS(SOFTGPU_CALL_ROW)};
#undef SOFTGPU_CALL_ROW

constexpr const CallRow& row_of(Call call) { return kCalls[static_cast<std::size_t>(call)]; }

constexpr bool is_call(std::string_view base) {
  for (const CallRow& row : kCalls)
    if (row.base == base) return true;
  return false;
}

}  // namespace softnic::gpu
