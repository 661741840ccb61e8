// SPDX-License-Identifier: Apache-2.0
//
// A table of the CUDA driver's functions, loaded with dlopen. An application that uses a GPU has
// loaded the driver anyway. Without it, the plugin transfers host memory only.
//
// Threads: read-only after loading. The driver's functions are thread safe, and use the context
// that is current in the calling thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "include/cuda/driver_abi.h"

// X(member, symbol, type, need). A driver without a required symbol is not used. An optional symbol
// that is missing is a null member, because drivers that are older than it are in use.
// clang-format off
#define BL_CUDA_FUNCTIONS(X)                                                                        \
  X(init, cuInit, CuResult(unsigned), kRequired)                                                    \
  X(driver_get_version, cuDriverGetVersion, CuResult(int*), kRequired)                              \
  X(get_error_name, cuGetErrorName, CuResult(CuResult, const char**), kRequired)                    \
  X(device_get_count, cuDeviceGetCount, CuResult(int*), kRequired)                                  \
  X(device_get, cuDeviceGet, CuResult(Ordinal*, int), kRequired)                                    \
  X(device_get_name, cuDeviceGetName, CuResult(char*, int, Ordinal), kRequired)                     \
  X(device_get_attribute, cuDeviceGetAttribute, CuResult(int*, DeviceAttribute, Ordinal), kRequired) \
  X(device_get_pci_bus_id, cuDeviceGetPCIBusId, CuResult(char*, int, Ordinal), kRequired)           \
  X(primary_get_state, cuDevicePrimaryCtxGetState, CuResult(Ordinal, unsigned*, int*), kRequired)   \
  X(primary_retain, cuDevicePrimaryCtxRetain, CuResult(Context**, Ordinal), kRequired)              \
  X(primary_release, cuDevicePrimaryCtxRelease_v2, CuResult(Ordinal), kRequired)                    \
  X(context_create, cuCtxCreate_v2, CuResult(Context**, unsigned, Ordinal), kOptional)              \
  X(context_destroy, cuCtxDestroy_v2, CuResult(Context*), kOptional)                                \
  X(context_get_current, cuCtxGetCurrent, CuResult(Context**), kRequired)                           \
  X(context_get_device, cuCtxGetDevice, CuResult(Ordinal*), kRequired)                              \
  X(context_push, cuCtxPushCurrent_v2, CuResult(Context*), kRequired)                               \
  X(context_pop, cuCtxPopCurrent_v2, CuResult(Context**), kRequired)                                \
  X(memory_allocate, cuMemAlloc_v2, CuResult(DevicePtr*, std::size_t), kRequired)                   \
  X(memory_free, cuMemFree_v2, CuResult(DevicePtr), kRequired)                                      \
  X(copy_to_device, cuMemcpyHtoDAsync_v2, CuResult(DevicePtr, const void*, std::size_t, Stream*), kRequired) \
  X(copy_to_host, cuMemcpyDtoHAsync_v2, CuResult(void*, DevicePtr, std::size_t, Stream*), kRequired) \
  X(stream_create, cuStreamCreate, CuResult(Stream**, unsigned), kRequired)                         \
  X(stream_create_with_priority, cuStreamCreateWithPriority, CuResult(Stream**, unsigned, int), kRequired) \
  X(stream_synchronize, cuStreamSynchronize, CuResult(Stream*), kRequired)                          \
  X(stream_destroy, cuStreamDestroy_v2, CuResult(Stream*), kRequired)                               \
  X(pointer_get_attribute, cuPointerGetAttribute, CuResult(void*, PointerAttribute, DevicePtr), kRequired) \
  X(get_address_range, cuMemGetAddressRange_v2, CuResult(DevicePtr*, std::size_t*, DevicePtr), kRequired) \
  X(get_range_handle, cuMemGetHandleForAddressRange, CuResult(void*, DevicePtr, std::size_t, int, unsigned long long), kOptional) \
  X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, CuResult(int*), kOptional)            \
  X(flush_writes, cuFlushGPUDirectRDMAWrites, CuResult(int, int), kOptional)
// clang-format on

namespace beeline::gpu {

using cuda_abi::CuResult;
using cuda_abi::DeviceAttribute;
using cuda_abi::DevicePtr;
using cuda_abi::Ordinal;
using cuda_abi::PointerAttribute;
struct Context;  // CUcontext is a pointer to it
struct Stream;   // CUstream is a pointer to it

struct Cuda {
// A member cannot be declared in parentheses.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define BL_CUDA_MEMBER(member, symbol, type, need) std::add_pointer_t<type> member = nullptr;
  BL_CUDA_FUNCTIONS(BL_CUDA_MEMBER)
#undef BL_CUDA_MEMBER

  std::string library;  // the name that was loaded
  int version = 0;      // 13000: CUDA 13.0
  int gpus = 0;

  // Ok, or "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY".
  Outcome<void> check(const char* call, CuResult result) const;
};

// The reason why there is no usable driver.
struct NoCuda {
  bool absent = true;  // there is no driver or no GPU, which is not a fault; false: it is broken
  std::string why;     // for messages
};

// Loads `path`, or libcuda.so.1 if it is empty. The driver is never unloaded. It is an error if it
// has no GPU.
Result<Cuda, NoCuda> load_cuda(const std::string& path = {});

}  // namespace beeline::gpu
