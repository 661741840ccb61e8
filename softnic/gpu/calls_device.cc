// SPDX-License-Identifier: Apache-2.0
// The driver calls for the driver itself and for the properties of GPUs.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "softnic/gpu/driver.h"
#include "softnic/gpu/errors.h"

namespace softnic::gpu {
namespace {

struct Constant {
  DeviceAttribute attribute;
  int value;
};

// The values of an H100, where nothing else determines them.
constexpr Constant kConstants[] = {
    {DeviceAttribute::kMaxThreadsPerBlock, 1024},
    {DeviceAttribute::kMaxBlockDimX, 1024},
    {DeviceAttribute::kMaxBlockDimY, 1024},
    {DeviceAttribute::kMaxBlockDimZ, 64},
    {DeviceAttribute::kMaxGridDimX, 0x7fffffff},
    {DeviceAttribute::kMaxGridDimY, 65535},
    {DeviceAttribute::kMaxGridDimZ, 65535},
    {DeviceAttribute::kMaxSharedMemoryPerBlock, 49152},
    {DeviceAttribute::kWarpSize, 32},
    {DeviceAttribute::kClockRate, 1980000},
    {DeviceAttribute::kGpuOverlap, 1},
    {DeviceAttribute::kMultiprocessorCount, 132},
    {DeviceAttribute::kKernelExecTimeout, 0},
    {DeviceAttribute::kCanMapHostMemory, 1},
    {DeviceAttribute::kComputeMode, 0},
    {DeviceAttribute::kConcurrentKernels, 1},
    {DeviceAttribute::kEccEnabled, 1},
    {DeviceAttribute::kTccDriver, 0},
    {DeviceAttribute::kMemoryClockRate, 2619000},
    {DeviceAttribute::kMemoryBusWidth, 5120},
    {DeviceAttribute::kL2CacheSize, 52428800},
    {DeviceAttribute::kMaxThreadsPerMultiprocessor, 2048},
    {DeviceAttribute::kAsyncEngineCount, 3},
    {DeviceAttribute::kUnifiedAddressing, 1},
    {DeviceAttribute::kStreamPrioritiesSupported, 1},
    {DeviceAttribute::kManagedMemory, 0},
    {DeviceAttribute::kMultiGpuBoard, 0},
    {DeviceAttribute::kHostNativeAtomicSupported, 0},
    {DeviceAttribute::kPageableMemoryAccess, 0},
    {DeviceAttribute::kConcurrentManagedAccess, 0},
    {DeviceAttribute::kCanUseHostPointerForRegisteredMem, 1},
    {DeviceAttribute::kCooperativeLaunch, 0},
    {DeviceAttribute::kHostRegisterSupported, 1},
    {DeviceAttribute::kDirectManagedMemAccessFromHost, 0},
    {DeviceAttribute::kVirtualMemoryManagementSupported, 1},
    {DeviceAttribute::kHandleTypePosixFdSupported, 0},
    {DeviceAttribute::kMemoryPoolsSupported, 0},
    {DeviceAttribute::kIpcEventSupported, 0},
    {DeviceAttribute::kHandleTypeFabricSupported, 0},
    {DeviceAttribute::kNumaConfig, 0},
    {DeviceAttribute::kNumaId, -1},
    {DeviceAttribute::kMulticastSupported, 0},
    {DeviceAttribute::kHostAllocDmaBufSupported, 0},
};

// The CUDA version that introduced an attribute, for attributes that old drivers lack.
int since(DeviceAttribute attribute) {
  const int number = static_cast<int>(attribute);
  if (number >= 139) return 12080;
  if (number >= 132) return 12020;
  if (number >= 125) return 12000;
  if (number >= 120) return 11070;
  if (number >= 115) return 11030;
  return number >= 103 ? 11000 : 2000;
}

CuResult read_attribute(const Driver& driver, Ordinal ordinal, DeviceAttribute attribute,
                        int* value) {
  const Gpu& gpu = *driver.gpu(ordinal);
  const Settings& settings = driver.settings;
  if (since(attribute) > settings.driver) return CuResult::kInvalidValue;
  const auto answer = [&](auto what) {
    *value = static_cast<int>(what);
    return CuResult::kSuccess;
  };
  if (attribute == DeviceAttribute::kPciBusId) return answer(gpu.pci.bus);
  if (attribute == DeviceAttribute::kPciDeviceId) return answer(gpu.pci.device);
  if (attribute == DeviceAttribute::kPciDomainId) return answer(gpu.pci.domain);
  if (attribute == DeviceAttribute::kGpuPciDeviceId) return answer(gpu.pci_ids);
  if (attribute == DeviceAttribute::kHostNumaId) return answer(gpu.numa);
  if (attribute == DeviceAttribute::kIntegrated) return answer(false);
  if (attribute == DeviceAttribute::kComputeCapabilityMajor) return answer(settings.compute / 10);
  if (attribute == DeviceAttribute::kComputeCapabilityMinor) return answer(settings.compute % 10);
  if (attribute == DeviceAttribute::kCanFlushRemoteWrites)
    return answer((settings.flush & kFlushOptionMemops) != 0);
  if (attribute == DeviceAttribute::kPageableMemoryAccessUsesHostPageTables)
    return answer(settings.coherent);
  if (attribute == DeviceAttribute::kGpuDirectRdmaSupported) return answer(settings.gdr);
  if (attribute == DeviceAttribute::kGpuDirectRdmaWithVmmSupported) return answer(settings.gdr);
  if (attribute == DeviceAttribute::kGpuDirectRdmaFlushWritesOptions) return answer(settings.flush);
  if (attribute == DeviceAttribute::kGpuDirectRdmaWritesOrdering) return answer(settings.ordering);
  if (attribute == DeviceAttribute::kDmaBufSupported)
    return answer(settings.dmabuf && settings.gdr);
  const auto* const constant =
      std::find_if(std::begin(kConstants), std::end(kConstants),
                   [&](const Constant& candidate) { return candidate.attribute == attribute; });
  if (constant == std::end(kConstants)) return CuResult::kInvalidValue;
  return answer(constant->value);
}

// Copies a text into a buffer of the program and truncates it if needed.
CuResult give_text(const std::string& text, char* out, int length) {
  if (out == nullptr || length <= 0) return CuResult::kInvalidValue;
  std::snprintf(out, static_cast<std::size_t>(length), "%s", text.c_str());
  return CuResult::kSuccess;
}

// Runs body(driver, gpu) if the GPU exists.
template <class Body>
CuResult of_gpu(Call call, Ordinal ordinal, const void* out, Body&& body) noexcept {
  return enter(call, [&](Driver& driver) {
    if (out == nullptr) return CuResult::kInvalidValue;
    const Gpu* const gpu = driver.gpu(ordinal);
    return gpu == nullptr ? CuResult::kInvalidDevice : body(driver, *gpu);
  });
}

}  // namespace

extern "C" {

CuResult cuInit(unsigned flags) {
  return enter<Stage::kAlways>(Call::k_cuInit, [&](Driver& driver) {
    return flags != 0 ? CuResult::kInvalidValue : driver.start();
  });
}

CuResult cuDriverGetVersion(int* version) {
  return enter<Stage::kAlways>(Call::k_cuDriverGetVersion, [&](Driver& driver) {
    if (version == nullptr) return CuResult::kInvalidValue;
    *version = driver.settings.driver;
    return CuResult::kSuccess;
  });
}

// Works in every process, also in forked ones, and so does not use enter().
CuResult cuGetErrorName(CuResult error, const char** name) {
  if (name == nullptr) return CuResult::kInvalidValue;
  *name = error_name(static_cast<int>(error));
  return *name == nullptr ? CuResult::kInvalidValue : CuResult::kSuccess;
}

CuResult cuGetErrorString(CuResult error, const char** text) {
  if (text == nullptr) return CuResult::kInvalidValue;
  *text = error_text(static_cast<int>(error));
  return *text == nullptr ? CuResult::kInvalidValue : CuResult::kSuccess;
}

CuResult cuDeviceGetCount(int* count) {
  return enter(Call::k_cuDeviceGetCount, [&](Driver& driver) {
    if (count == nullptr) return CuResult::kInvalidValue;
    *count = static_cast<int>(driver.gpus.size());
    return CuResult::kSuccess;
  });
}

CuResult cuDeviceGet(Ordinal* device, int ordinal) {
  return of_gpu(Call::k_cuDeviceGet, ordinal, device, [&](Driver&, const Gpu&) {
    *device = ordinal;
    return CuResult::kSuccess;
  });
}

CuResult cuDeviceGetName(char* name, int length, Ordinal device) {
  return of_gpu(Call::k_cuDeviceGetName, device, name,
                [&](Driver&, const Gpu&) { return give_text("softgpu", name, length); });
}

CuResult cuDeviceGetUuid_v2(Uuid* uuid, Ordinal device) {
  return of_gpu(Call::k_cuDeviceGetUuid_v2, device, uuid, [&](Driver&, const Gpu& gpu) {
    *uuid = gpu.uuid;
    return CuResult::kSuccess;
  });
}

CuResult cuDeviceGetAttribute(int* value, DeviceAttribute attribute, Ordinal device) {
  return of_gpu(Call::k_cuDeviceGetAttribute, device, value, [&](Driver& driver, const Gpu&) {
    return read_attribute(driver, device, attribute, value);
  });
}

CuResult cuDeviceTotalMem_v2(std::size_t* bytes, Ordinal device) {
  return of_gpu(Call::k_cuDeviceTotalMem_v2, device, bytes, [&](Driver& driver, const Gpu&) {
    *bytes = driver.settings.memory;
    return CuResult::kSuccess;
  });
}

CuResult cuDeviceGetPCIBusId(char* text, int length, Ordinal device) {
  return of_gpu(Call::k_cuDeviceGetPCIBusId, device, text,
                [&](Driver&, const Gpu& gpu) { return give_text(gpu.pci.text(), text, length); });
}

CuResult cuDeviceGetByPCIBusId(Ordinal* device, const char* text) {
  return enter(Call::k_cuDeviceGetByPCIBusId, [&](Driver& driver) {
    PciAddress wanted;
    if (device == nullptr || text == nullptr || !parse_pci_address(text, &wanted))
      return CuResult::kInvalidValue;
    for (std::size_t i = 0; i < driver.gpus.size(); ++i) {
      if (driver.gpus[i].pci != wanted) continue;
      *device = static_cast<Ordinal>(i);
      return CuResult::kSuccess;
    }
    return CuResult::kInvalidDevice;
  });
}

// Copies between GPUs always work. There are no kernels, so there is no direct access.
CuResult cuDeviceCanAccessPeer(int* can, Ordinal device, Ordinal peer) {
  return of_gpu(Call::k_cuDeviceCanAccessPeer, device, can, [&](Driver& driver, const Gpu&) {
    if (driver.gpu(peer) == nullptr) return CuResult::kInvalidDevice;
    *can = 0;
    return CuResult::kSuccess;
  });
}

}  // extern "C"

SOFTGPU_ALIAS(cuDeviceGetUuid, cuDeviceGetUuid_v2);

}  // namespace softnic::gpu
