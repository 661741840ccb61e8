// SPDX-License-Identifier: Apache-2.0
#include "common/gpu/gpu.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cinttypes>
#include <cstdio>
#include <fstream>

namespace beeline::gpu {
namespace {

using cuda_abi::kFlushOptionHost;
using cuda_abi::kMemoryTypeDevice;

// 0 if the driver does not know the attribute.
int attribute(const Cuda& cuda, Ordinal ordinal, DeviceAttribute which) {
  int value = 0;
  return cuda.device_get_attribute(&value, which, ordinal) == CuResult::kSuccess ? value : 0;
}

// The driver writes "0000:1B:00.0", and some versions write a domain of eight digits.
std::string as_sysfs_writes_it(std::string address) {
  std::ranges::transform(address, address.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t digits = address.find(':');
  if (digits != std::string::npos && digits > 4) address.erase(0, digits - 4);
  return address;
}

}  // namespace

Outcome<Gpu> read_gpu(const Cuda& cuda, Ordinal ordinal) {
  Gpu gpu;
  gpu.ordinal = ordinal;
  std::array<char, 128> text{};
  BL_TRY(
      cuda.check("cuDeviceGetName", cuda.device_get_name(text.data(), int{text.size()}, ordinal)));
  gpu.name = text.data();
  BL_TRY(cuda.check("cuDeviceGetPCIBusId",
                    cuda.device_get_pci_bus_id(text.data(), int{text.size()}, ordinal)));
  gpu.pci = as_sysfs_writes_it(text.data());
  const auto has = [&](DeviceAttribute which) { return attribute(cuda, ordinal, which); };
  gpu.compute_major = has(DeviceAttribute::kComputeCapabilityMajor);
  gpu.compute_minor = has(DeviceAttribute::kComputeCapabilityMinor);
  // The attribute was added in CUDA 11.3; the feature is older.
  gpu.gdr = cuda.version < 11030 || has(DeviceAttribute::kGpuDirectRdmaSupported) != 0;
  gpu.dmabuf = cuda.get_range_handle != nullptr && has(DeviceAttribute::kDmaBufSupported) != 0;
  gpu.coherent = has(DeviceAttribute::kPageableMemoryAccessUsesHostPageTables) != 0;
  gpu.host_can_flush =
      cuda.flush_writes != nullptr &&
      (has(DeviceAttribute::kGpuDirectRdmaFlushWritesOptions) & kFlushOptionHost) != 0;
  gpu.writes_ordering = has(DeviceAttribute::kGpuDirectRdmaWritesOrdering);
  return gpu;
}

std::string label(const Gpu& gpu) {
  return "GPU " + std::to_string(gpu.ordinal) + " (" + gpu.pci + ")";
}

std::vector<Ordinal> gpus_in_use(const Cuda& cuda) {
  std::vector<Ordinal> used;
  Context* current = nullptr;
  Ordinal own = 0;
  if (cuda.context_get_current(&current) == CuResult::kSuccess && current != nullptr &&
      cuda.context_get_device(&own) == CuResult::kSuccess) {
    used.push_back(own);
  }
  for (int i = 0; i < cuda.gpus; ++i) {
    Ordinal ordinal = 0;
    unsigned flags = 0;
    int active = 0;
    if (cuda.device_get(&ordinal, i) != CuResult::kSuccess) continue;
    if (cuda.primary_get_state(ordinal, &flags, &active) != CuResult::kSuccess) continue;
    if (active != 0 && std::ranges::find(used, ordinal) == used.end()) used.push_back(ordinal);
  }
  return used;
}

Ordinal owner_of(const Cuda& cuda, const void* pointer) noexcept {
  const auto address = reinterpret_cast<DevicePtr>(pointer);
  unsigned type = 0;
  Ordinal ordinal = -1;
  if (cuda.pointer_get_attribute(&type, PointerAttribute::kMemoryType, address) !=
          CuResult::kSuccess ||
      type != kMemoryTypeDevice) {
    return -1;
  }
  const CuResult asked =
      cuda.pointer_get_attribute(&ordinal, PointerAttribute::kDeviceOrdinal, address);
  return asked == CuResult::kSuccess ? ordinal : -1;
}

std::uint64_t buffer_id_of(const Cuda& cuda, const void* pointer) noexcept {
  std::uint64_t id = 0;
  const CuResult asked = cuda.pointer_get_attribute(&id, PointerAttribute::kBufferId,
                                                    reinterpret_cast<DevicePtr>(pointer));
  return asked == CuResult::kSuccess ? id : 0;
}

// The second line of `resource` describes BAR1: first byte, last byte, flags.
std::size_t reachable_bytes(const std::string& sysfs_root, const Gpu& gpu) {
  std::ifstream file(sysfs_root + "/bus/pci/devices/" + gpu.pci + "/resource");
  std::string line;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  for (int i = 0; i < 2; ++i) {
    if (!std::getline(file, line)) return 0;
  }
  if (std::sscanf(line.c_str(), "%" SCNx64 " %" SCNx64, &first, &last) != 2) return 0;
  return last > first ? last - first + 1 : 0;
}

}  // namespace beeline::gpu
