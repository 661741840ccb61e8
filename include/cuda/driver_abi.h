// SPDX-License-Identifier: Apache-2.0
//
// Numbers and structures of the CUDA driver's API, so that no toolkit is needed to build Beeline.
// tests/beds/softgpu/cuda_facts.cc compares them with cuda.h on machines that have it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_abi {

// The results that this repository returns or checks.
enum class CuResult : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kOperatingSystem = 304,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kPrimaryContextActive = 708,
  kContextIsDestroyed = 709,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kNotPermitted = 800,
  kNotSupported = 801,
  kSystemNotReady = 802,
};

using DevicePtr = unsigned long long;
using Ordinal = int;  // CUdevice
using AllocationHandle = unsigned long long;

struct Uuid {
  unsigned char bytes[16];
};

enum class DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxBlockDimX = 2,
  kMaxBlockDimY = 3,
  kMaxBlockDimZ = 4,
  kMaxGridDimX = 5,
  kMaxGridDimY = 6,
  kMaxGridDimZ = 7,
  kMaxSharedMemoryPerBlock = 8,
  kWarpSize = 10,
  kClockRate = 13,
  kGpuOverlap = 15,
  kMultiprocessorCount = 16,
  kKernelExecTimeout = 17,
  kIntegrated = 18,
  kCanMapHostMemory = 19,
  kComputeMode = 20,
  kConcurrentKernels = 31,
  kEccEnabled = 32,
  kPciBusId = 33,
  kPciDeviceId = 34,
  kTccDriver = 35,
  kMemoryClockRate = 36,
  kMemoryBusWidth = 37,
  kL2CacheSize = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kAsyncEngineCount = 40,
  kUnifiedAddressing = 41,
  kPciDomainId = 50,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kStreamPrioritiesSupported = 78,
  kManagedMemory = 83,
  kMultiGpuBoard = 84,
  kHostNativeAtomicSupported = 86,
  kPageableMemoryAccess = 88,
  kConcurrentManagedAccess = 89,
  kCanUseHostPointerForRegisteredMem = 91,
  kCooperativeLaunch = 95,
  kCanFlushRemoteWrites = 98,
  kHostRegisterSupported = 99,
  kPageableMemoryAccessUsesHostPageTables = 100,
  kDirectManagedMemAccessFromHost = 101,
  kVirtualMemoryManagementSupported = 102,
  kHandleTypePosixFdSupported = 103,
  kGpuDirectRdmaWithVmmSupported = 110,
  kMemoryPoolsSupported = 115,
  kGpuDirectRdmaSupported = 116,
  kGpuDirectRdmaFlushWritesOptions = 117,
  kGpuDirectRdmaWritesOrdering = 118,
  kDmaBufSupported = 124,
  kIpcEventSupported = 125,
  kHandleTypeFabricSupported = 128,
  kNumaConfig = 130,
  kNumaId = 131,
  kMulticastSupported = 132,
  kMpsEnabled = 133,
  kHostNumaId = 134,
  kGpuPciDeviceId = 139,
  kHostAllocDmaBufSupported = 146,
};

enum class PointerAttribute : int {
  kContext = 1,
  kMemoryType = 2,
  kDevicePointer = 3,
  kHostPointer = 4,
  kSyncMemops = 6,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kIsLegacyIpcCapable = 10,
  kRangeStartAddr = 11,
  kRangeSize = 12,
  kMapped = 13,
  kAllowedHandleTypes = 14,
  kIsGpuDirectRdmaCapable = 15,
  kAccessFlags = 16,
  kMempoolHandle = 17,
  kMappingSize = 18,
  kMappingBaseAddr = 19,
  kMemoryBlockId = 20,
};

inline constexpr unsigned kMemoryTypeHost = 1;
inline constexpr unsigned kMemoryTypeDevice = 2;

inline constexpr int kFlushOptionHost = 1;
inline constexpr int kFlushOptionMemops = 2;
inline constexpr int kOrderingNone = 0;
inline constexpr int kOrderingOwner = 100;
inline constexpr int kOrderingAllDevices = 200;
inline constexpr int kFlushToOwner = 100;
inline constexpr int kFlushToAllDevices = 200;

inline constexpr int kRangeHandleDmaBufFd = 1;
inline constexpr unsigned long long kRangeFlagPcie = 1;

inline constexpr int kAllocationPinned = 1;
inline constexpr int kLocationDevice = 1;
inline constexpr int kHandleTypeNone = 0;
inline constexpr int kHandleTypePosixFd = 1;
inline constexpr int kAccessNone = 0;
inline constexpr int kAccessRead = 1;
inline constexpr int kAccessReadWrite = 3;

inline constexpr unsigned kHostAllocKnownFlags = 7;      // portable, mapped, write-combined
inline constexpr unsigned kHostRegisterKnownFlags = 15;  // portable, mapped, I/O memory, read-only

inline constexpr unsigned long long kProcLegacyStream = 1;
inline constexpr unsigned long long kProcPerThreadStream = 2;
inline constexpr int kProcFound = 0;
inline constexpr int kProcNotFound = 1;
inline constexpr int kProcVersionNotSufficient = 2;

struct MemLocation {
  int type;
  int id;
};

struct MemAllocationProp {
  int type;
  int requested_handle_types;
  MemLocation location;
  void* windows_only;
  unsigned char compression_type;
  unsigned char gpu_direct_rdma_capable;
  unsigned short usage;
  unsigned char reserved[4];
};

struct MemAccessDesc {
  MemLocation location;
  int flags;
};

}  // namespace cuda_abi
