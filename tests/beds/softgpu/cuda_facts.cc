// SPDX-License-Identifier: Apache-2.0
// Compares softgpu's declarations of the CUDA driver with cuda.h. Compiled only if cuda.h exists;
// there is nothing to run. Every form of every call, under its own name.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <tuple>
#include <type_traits>

#include "tests/beds/softgpu/cuda_calls.h"

namespace softnic::gpu {
namespace {

// Functions have the same calling convention if they have the same number of arguments, of the same
// sizes, and pointers at the same positions. Enumerations count as numbers.
template <class Type>
constexpr int shape_of() {
  if constexpr (std::is_void_v<Type>)
    return 0;
  else if constexpr (std::is_pointer_v<Type>)
    return 100;
  else if constexpr (std::is_floating_point_v<Type>)
    return 200 + static_cast<int>(sizeof(Type));
  else
    return static_cast<int>(sizeof(Type));
}

template <class A, class B>
struct SameShape : std::false_type {};
template <class R, class... A, class S, class... B>
struct SameShape<R(A...), S(B...)>
    : std::bool_constant<sizeof...(A) == sizeof...(B) && shape_of<R>() == shape_of<S>()> {
  static constexpr bool arguments() {
    if constexpr (sizeof...(A) == sizeof...(B))
      return ((shape_of<A>() == shape_of<B>()) && ...);
    else
      return false;
  }
};

#define SOFTGPU_COMPARE(name, ...)                                                       \
  static_assert(SameShape<decltype(::name), __VA_ARGS__>::value, #name ": other count"); \
  static_assert(SameShape<decltype(::name), __VA_ARGS__>::arguments(), #name ": other types");
SOFTGPU_TYPES(SOFTGPU_COMPARE)
#undef SOFTGPU_COMPARE

#define SOFTGPU_SAME(ours, theirs) \
  static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs), #theirs)

SOFTGPU_SAME(CuResult::kInvalidValue, CUDA_ERROR_INVALID_VALUE);
SOFTGPU_SAME(CuResult::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SOFTGPU_SAME(CuResult::kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
SOFTGPU_SAME(CuResult::kNoDevice, CUDA_ERROR_NO_DEVICE);
SOFTGPU_SAME(CuResult::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
SOFTGPU_SAME(CuResult::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
SOFTGPU_SAME(CuResult::kOperatingSystem, CUDA_ERROR_OPERATING_SYSTEM);
SOFTGPU_SAME(CuResult::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
SOFTGPU_SAME(CuResult::kNotFound, CUDA_ERROR_NOT_FOUND);
SOFTGPU_SAME(CuResult::kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SOFTGPU_SAME(CuResult::kHostMemoryAlreadyRegistered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SOFTGPU_SAME(CuResult::kHostMemoryNotRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
SOFTGPU_SAME(CuResult::kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
SOFTGPU_SAME(CuResult::kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY);

#define SOFTGPU_ATTRIBUTE(ours, theirs) \
  SOFTGPU_SAME(DeviceAttribute::ours, CU_DEVICE_ATTRIBUTE_##theirs)
SOFTGPU_ATTRIBUTE(kMaxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
SOFTGPU_ATTRIBUTE(kMaxBlockDimX, MAX_BLOCK_DIM_X);
SOFTGPU_ATTRIBUTE(kMaxBlockDimY, MAX_BLOCK_DIM_Y);
SOFTGPU_ATTRIBUTE(kMaxBlockDimZ, MAX_BLOCK_DIM_Z);
SOFTGPU_ATTRIBUTE(kMaxGridDimX, MAX_GRID_DIM_X);
SOFTGPU_ATTRIBUTE(kMaxGridDimY, MAX_GRID_DIM_Y);
SOFTGPU_ATTRIBUTE(kMaxGridDimZ, MAX_GRID_DIM_Z);
SOFTGPU_ATTRIBUTE(kMaxSharedMemoryPerBlock, MAX_SHARED_MEMORY_PER_BLOCK);
SOFTGPU_ATTRIBUTE(kWarpSize, WARP_SIZE);
SOFTGPU_ATTRIBUTE(kClockRate, CLOCK_RATE);
SOFTGPU_ATTRIBUTE(kGpuOverlap, GPU_OVERLAP);
SOFTGPU_ATTRIBUTE(kMultiprocessorCount, MULTIPROCESSOR_COUNT);
SOFTGPU_ATTRIBUTE(kKernelExecTimeout, KERNEL_EXEC_TIMEOUT);
SOFTGPU_ATTRIBUTE(kIntegrated, INTEGRATED);
SOFTGPU_ATTRIBUTE(kCanMapHostMemory, CAN_MAP_HOST_MEMORY);
SOFTGPU_ATTRIBUTE(kComputeMode, COMPUTE_MODE);
SOFTGPU_ATTRIBUTE(kConcurrentKernels, CONCURRENT_KERNELS);
SOFTGPU_ATTRIBUTE(kEccEnabled, ECC_ENABLED);
SOFTGPU_ATTRIBUTE(kPciBusId, PCI_BUS_ID);
SOFTGPU_ATTRIBUTE(kPciDeviceId, PCI_DEVICE_ID);
SOFTGPU_ATTRIBUTE(kTccDriver, TCC_DRIVER);
SOFTGPU_ATTRIBUTE(kMemoryClockRate, MEMORY_CLOCK_RATE);
SOFTGPU_ATTRIBUTE(kMemoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH);
SOFTGPU_ATTRIBUTE(kL2CacheSize, L2_CACHE_SIZE);
SOFTGPU_ATTRIBUTE(kMaxThreadsPerMultiprocessor, MAX_THREADS_PER_MULTIPROCESSOR);
SOFTGPU_ATTRIBUTE(kAsyncEngineCount, ASYNC_ENGINE_COUNT);
SOFTGPU_ATTRIBUTE(kUnifiedAddressing, UNIFIED_ADDRESSING);
SOFTGPU_ATTRIBUTE(kPciDomainId, PCI_DOMAIN_ID);
SOFTGPU_ATTRIBUTE(kComputeCapabilityMajor, COMPUTE_CAPABILITY_MAJOR);
SOFTGPU_ATTRIBUTE(kComputeCapabilityMinor, COMPUTE_CAPABILITY_MINOR);
SOFTGPU_ATTRIBUTE(kStreamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED);
SOFTGPU_ATTRIBUTE(kManagedMemory, MANAGED_MEMORY);
SOFTGPU_ATTRIBUTE(kMultiGpuBoard, MULTI_GPU_BOARD);
SOFTGPU_ATTRIBUTE(kHostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED);
SOFTGPU_ATTRIBUTE(kPageableMemoryAccess, PAGEABLE_MEMORY_ACCESS);
SOFTGPU_ATTRIBUTE(kConcurrentManagedAccess, CONCURRENT_MANAGED_ACCESS);
SOFTGPU_ATTRIBUTE(kCanUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
SOFTGPU_ATTRIBUTE(kCooperativeLaunch, COOPERATIVE_LAUNCH);
SOFTGPU_ATTRIBUTE(kCanFlushRemoteWrites, CAN_FLUSH_REMOTE_WRITES);
SOFTGPU_ATTRIBUTE(kHostRegisterSupported, HOST_REGISTER_SUPPORTED);
SOFTGPU_ATTRIBUTE(kPageableMemoryAccessUsesHostPageTables,
                  PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
SOFTGPU_ATTRIBUTE(kDirectManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST);
SOFTGPU_ATTRIBUTE(kVirtualMemoryManagementSupported, VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SOFTGPU_ATTRIBUTE(kHandleTypePosixFdSupported, HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SOFTGPU_ATTRIBUTE(kGpuDirectRdmaWithVmmSupported, GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
SOFTGPU_ATTRIBUTE(kMemoryPoolsSupported, MEMORY_POOLS_SUPPORTED);
SOFTGPU_ATTRIBUTE(kGpuDirectRdmaSupported, GPU_DIRECT_RDMA_SUPPORTED);
SOFTGPU_ATTRIBUTE(kGpuDirectRdmaFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
SOFTGPU_ATTRIBUTE(kGpuDirectRdmaWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING);
SOFTGPU_ATTRIBUTE(kDmaBufSupported, DMA_BUF_SUPPORTED);
SOFTGPU_ATTRIBUTE(kIpcEventSupported, IPC_EVENT_SUPPORTED);
SOFTGPU_ATTRIBUTE(kHandleTypeFabricSupported, HANDLE_TYPE_FABRIC_SUPPORTED);
SOFTGPU_ATTRIBUTE(kNumaConfig, NUMA_CONFIG);
SOFTGPU_ATTRIBUTE(kNumaId, NUMA_ID);
SOFTGPU_ATTRIBUTE(kMulticastSupported, MULTICAST_SUPPORTED);
SOFTGPU_ATTRIBUTE(kMpsEnabled, MPS_ENABLED);
SOFTGPU_ATTRIBUTE(kHostNumaId, HOST_NUMA_ID);
SOFTGPU_ATTRIBUTE(kGpuPciDeviceId, GPU_PCI_DEVICE_ID);
SOFTGPU_ATTRIBUTE(kHostAllocDmaBufSupported, HOST_ALLOC_DMA_BUF_SUPPORTED);

#define SOFTGPU_POINTER(ours, theirs) \
  SOFTGPU_SAME(PointerAttribute::ours, CU_POINTER_ATTRIBUTE_##theirs)
SOFTGPU_POINTER(kContext, CONTEXT);
SOFTGPU_POINTER(kMemoryType, MEMORY_TYPE);
SOFTGPU_POINTER(kDevicePointer, DEVICE_POINTER);
SOFTGPU_POINTER(kHostPointer, HOST_POINTER);
SOFTGPU_POINTER(kSyncMemops, SYNC_MEMOPS);
SOFTGPU_POINTER(kBufferId, BUFFER_ID);
SOFTGPU_POINTER(kIsManaged, IS_MANAGED);
SOFTGPU_POINTER(kDeviceOrdinal, DEVICE_ORDINAL);
SOFTGPU_POINTER(kIsLegacyIpcCapable, IS_LEGACY_CUDA_IPC_CAPABLE);
SOFTGPU_POINTER(kRangeStartAddr, RANGE_START_ADDR);
SOFTGPU_POINTER(kRangeSize, RANGE_SIZE);
SOFTGPU_POINTER(kMapped, MAPPED);
SOFTGPU_POINTER(kAllowedHandleTypes, ALLOWED_HANDLE_TYPES);
SOFTGPU_POINTER(kIsGpuDirectRdmaCapable, IS_GPU_DIRECT_RDMA_CAPABLE);
SOFTGPU_POINTER(kAccessFlags, ACCESS_FLAGS);
SOFTGPU_POINTER(kMempoolHandle, MEMPOOL_HANDLE);
SOFTGPU_POINTER(kMappingSize, MAPPING_SIZE);
SOFTGPU_POINTER(kMappingBaseAddr, MAPPING_BASE_ADDR);
SOFTGPU_POINTER(kMemoryBlockId, MEMORY_BLOCK_ID);

SOFTGPU_SAME(kMemoryTypeHost, CU_MEMORYTYPE_HOST);
SOFTGPU_SAME(kMemoryTypeDevice, CU_MEMORYTYPE_DEVICE);
SOFTGPU_SAME(kFlushOptionHost, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST);
SOFTGPU_SAME(kFlushOptionMemops, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_MEMOPS);
SOFTGPU_SAME(kOrderingNone, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE);
SOFTGPU_SAME(kOrderingOwner, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER);
SOFTGPU_SAME(kOrderingAllDevices, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES);
SOFTGPU_SAME(kFlushToOwner, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
SOFTGPU_SAME(kFlushToAllDevices, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES);
SOFTGPU_SAME(kRangeHandleDmaBufFd, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
SOFTGPU_SAME(kRangeFlagPcie, CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE);
SOFTGPU_SAME(kAllocationPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SOFTGPU_SAME(kLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE);
SOFTGPU_SAME(kHandleTypeNone, CU_MEM_HANDLE_TYPE_NONE);
SOFTGPU_SAME(kHandleTypePosixFd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SOFTGPU_SAME(kAccessNone, CU_MEM_ACCESS_FLAGS_PROT_NONE);
SOFTGPU_SAME(kAccessRead, CU_MEM_ACCESS_FLAGS_PROT_READ);
SOFTGPU_SAME(kAccessReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SOFTGPU_SAME(kProcLegacyStream, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
SOFTGPU_SAME(kProcPerThreadStream, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
SOFTGPU_SAME(kProcFound, CU_GET_PROC_ADDRESS_SUCCESS);
SOFTGPU_SAME(kProcNotFound, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
SOFTGPU_SAME(kProcVersionNotSufficient, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
SOFTGPU_SAME(kHostAllocKnownFlags,
             CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED);
SOFTGPU_SAME(kHostRegisterKnownFlags, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                          CU_MEMHOSTREGISTER_IOMEMORY |
                                          CU_MEMHOSTREGISTER_READ_ONLY);

SOFTGPU_SAME(sizeof(Uuid), sizeof(CUuuid));
SOFTGPU_SAME(sizeof(MemLocation), sizeof(CUmemLocation));
SOFTGPU_SAME(sizeof(MemAccessDesc), sizeof(CUmemAccessDesc));
SOFTGPU_SAME(offsetof(MemAccessDesc, flags), offsetof(CUmemAccessDesc, flags));
SOFTGPU_SAME(sizeof(MemAllocationProp), sizeof(CUmemAllocationProp));
SOFTGPU_SAME(offsetof(MemAllocationProp, requested_handle_types),
             offsetof(CUmemAllocationProp, requestedHandleTypes));
SOFTGPU_SAME(offsetof(MemAllocationProp, location), offsetof(CUmemAllocationProp, location));
SOFTGPU_SAME(offsetof(MemAllocationProp, gpu_direct_rdma_capable),
             offsetof(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable));
SOFTGPU_SAME(offsetof(MemAllocationProp, usage), offsetof(CUmemAllocationProp, allocFlags.usage));

}  // namespace
}  // namespace softnic::gpu
