// SPDX-License-Identifier: Apache-2.0
//
// Compares nccl_api.h and cuda_api.h with the real headers, at compile time, on machines that have
// them.
#include <cuda.h>
#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "tools/gpu_check/cuda_api.h"
#include "tools/gpu_check/nccl_api.h"

namespace beeline::gpu {

// Enumerations are declared as int here, and handles as void pointers.
template <class T>
constexpr bool kTravelsAsInt = std::is_enum_v<T> && sizeof(T) == sizeof(int);
template <class T>
constexpr bool kTravelsAsPointer = std::is_pointer_v<T>;

static_assert(sizeof(ncclUniqueId) == kUniqueIdBytes && alignof(ncclUniqueId) == 1);
static_assert(kTravelsAsInt<ncclResult_t> && kTravelsAsInt<ncclDataType_t> &&
              kTravelsAsInt<ncclRedOp_t>);
static_assert(kTravelsAsPointer<ncclComm_t> && kTravelsAsPointer<cudaStream_t>);
static_assert(kNcclSuccess == ncclSuccess && kNcclInProgress == ncclInProgress);
static_assert(kNcclUint8 == ncclUint8 && kNcclInt32 == ncclInt32 && kNcclFloat32 == ncclFloat32);
static_assert(kNcclSum == ncclSum);

static_assert(kTravelsAsInt<CUresult> && std::is_same_v<CUdevice, int>);
static_assert(kTravelsAsPointer<CUcontext> && kTravelsAsPointer<CUstream>);
static_assert(sizeof(DevicePointer) == sizeof(CUdeviceptr) && std::is_unsigned_v<CUdeviceptr>);
static_assert(kCudaSuccess == CUDA_SUCCESS && kCudaNotReady == CUDA_ERROR_NOT_READY);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);

// Whether a function of the real header has parameters and a result of the same kinds as the
// pointer declared here.
template <class T>
constexpr std::size_t kind() {
  if constexpr (std::is_void_v<T>) {
    return 0;
  } else if constexpr (std::is_pointer_v<T>) {
    return 1;
  } else {
    return 2 * sizeof(T) + (std::is_class_v<T> ? 1 : 0);
  }
}
template <class Ours, class Real>
struct IsAlike : std::false_type {};
template <class R1, class... A1, class R2, class... A2>
requires(sizeof...(A1) == sizeof...(A2)) struct IsAlike<R1 (*)(A1...), R2 (*)(A2...)> {
  static constexpr bool value = kind<R1>() == kind<R2>() && ((kind<A1>() == kind<A2>()) && ...);
};

#define BL_ALIKE(table, member, real) \
  static_assert(IsAlike<decltype(table::member), decltype(&::real)>::value)
BL_ALIKE(NcclFunctions, get_version, ncclGetVersion);
BL_ALIKE(NcclFunctions, get_error_string, ncclGetErrorString);
BL_ALIKE(NcclFunctions, get_last_error, ncclGetLastError);
BL_ALIKE(NcclFunctions, get_unique_id, ncclGetUniqueId);
BL_ALIKE(NcclFunctions, comm_init_rank, ncclCommInitRank);
BL_ALIKE(NcclFunctions, comm_get_async_error, ncclCommGetAsyncError);
BL_ALIKE(NcclFunctions, comm_destroy, ncclCommDestroy);
BL_ALIKE(NcclFunctions, all_reduce, ncclAllReduce);
BL_ALIKE(NcclFunctions, all_gather, ncclAllGather);
BL_ALIKE(NcclFunctions, reduce_scatter, ncclReduceScatter);
BL_ALIKE(NcclFunctions, send, ncclSend);
BL_ALIKE(NcclFunctions, recv, ncclRecv);
BL_ALIKE(NcclFunctions, group_start, ncclGroupStart);
BL_ALIKE(NcclFunctions, group_end, ncclGroupEnd);
BL_ALIKE(CudaFunctions, init, cuInit);
BL_ALIKE(CudaFunctions, driver_get_version, cuDriverGetVersion);
BL_ALIKE(CudaFunctions, get_error_name, cuGetErrorName);
BL_ALIKE(CudaFunctions, device_get_count, cuDeviceGetCount);
BL_ALIKE(CudaFunctions, device_get, cuDeviceGet);
BL_ALIKE(CudaFunctions, device_get_name, cuDeviceGetName);
BL_ALIKE(CudaFunctions, device_get_pci_bus_id, cuDeviceGetPCIBusId);
BL_ALIKE(CudaFunctions, device_get_attribute, cuDeviceGetAttribute);
BL_ALIKE(CudaFunctions, primary_context_retain, cuDevicePrimaryCtxRetain);
BL_ALIKE(CudaFunctions, context_set_current, cuCtxSetCurrent);
BL_ALIKE(CudaFunctions, context_synchronize, cuCtxSynchronize);
BL_ALIKE(CudaFunctions, memory_allocate, cuMemAlloc);
BL_ALIKE(CudaFunctions, memory_set, cuMemsetD8);
BL_ALIKE(CudaFunctions, copy_to_device, cuMemcpyHtoD);
BL_ALIKE(CudaFunctions, copy_to_host, cuMemcpyDtoH);
BL_ALIKE(CudaFunctions, stream_create, cuStreamCreate);
BL_ALIKE(CudaFunctions, stream_query, cuStreamQuery);

}  // namespace beeline::gpu
