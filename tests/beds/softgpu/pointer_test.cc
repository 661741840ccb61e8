// SPDX-License-Identifier: Apache-2.0
// Pointer attributes.
#include <array>
#include <type_traits>
#include <vector>

#include "tests/beds/softgpu/process.h"
#include "tests/support/catch.h"

namespace {

using namespace beeline::test;
using softnic::gpu::AllocationHandle;
using softnic::gpu::MemAllocationProp;
using Attribute = softnic::gpu::PointerAttribute;

constexpr std::size_t kUnit = std::size_t{2} << 20;

// Reads into a buffer of the type's size, followed by a guard.
template <class Value>
Value attribute(Cuda& cuda, Attribute which, DevicePtr address) {
  struct {
    Value value;
    std::array<unsigned char, 8> guard;
  } room{};
  room.guard.fill(0xee);
  CU_MUST(cuda, kSuccess, cuda.cuPointerGetAttribute(&room.value, which, address));
  for (const unsigned char byte : room.guard) BL_MUST(byte == 0xee);
  return room.value;
}

TEST_CASE("pointer: device memory", "[pointer]") {
  in_process(
      [](Cuda& cuda) {
        Context* const context = cuda.start(1);
        const DevicePtr device = cuda.allocate(5000);
        const DevicePtr inside = device + 4000;
        BL_MUST(attribute<unsigned>(cuda, Attribute::kMemoryType, inside) == 2);
        BL_MUST(attribute<Context*>(cuda, Attribute::kContext, inside) == context);
        BL_MUST(attribute<int>(cuda, Attribute::kDeviceOrdinal, inside) == 1);
        BL_MUST(attribute<DevicePtr>(cuda, Attribute::kDevicePointer, inside) == inside);
        BL_MUST(attribute<DevicePtr>(cuda, Attribute::kRangeStartAddr, inside) == device);
        BL_MUST(attribute<std::size_t>(cuda, Attribute::kRangeSize, inside) == 5000);
        BL_MUST(attribute<unsigned>(cuda, Attribute::kIsGpuDirectRdmaCapable, inside) == 1);
        BL_MUST(attribute<unsigned>(cuda, Attribute::kIsLegacyIpcCapable, inside) == 1);
        BL_MUST(attribute<unsigned>(cuda, Attribute::kMapped, inside) == 1);
        BL_MUST(attribute<unsigned>(cuda, Attribute::kIsManaged, inside) == 0);
        BL_MUST(attribute<unsigned long long>(cuda, Attribute::kAllowedHandleTypes, inside) == 0);
        BL_MUST(attribute<void*>(cuda, Attribute::kMempoolHandle, inside) == nullptr);
        void* host = nullptr;
        CU_MUST(cuda, kInvalidValue,
                cuda.cuPointerGetAttribute(&host, Attribute::kHostPointer, inside));
        CU_MUST(cuda, kInvalidValue,
                cuda.cuPointerGetAttribute(&host, Attribute::kContext, device + 5000));
        cuda.set("gpus=2,gdr=no");
        BL_MUST(attribute<unsigned>(cuda, Attribute::kIsGpuDirectRdmaCapable, inside) == 0);
      },
      {{"SOFTGPU", "gpus=2"}});
}

TEST_CASE("pointer: host memory that the driver knows", "[pointer]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    void* host = nullptr;
    CU_MUST(cuda, kSuccess, cuda.cuMemAllocHost_v2(&host, 4096));
    const auto address = reinterpret_cast<DevicePtr>(host);
    BL_MUST(attribute<unsigned>(cuda, Attribute::kMemoryType, address) == 1);
    BL_MUST(attribute<void*>(cuda, Attribute::kHostPointer, address) == host);
    BL_MUST(attribute<unsigned>(cuda, Attribute::kIsGpuDirectRdmaCapable, address) == 0);
    BL_MUST(attribute<unsigned>(cuda, Attribute::kIsLegacyIpcCapable, address) == 0);
  });
}

TEST_CASE("pointer: an unknown address", "[pointer]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    int local = 0;
    unsigned type = 5;
    int ordinal = 5;
    DevicePtr start = 5;
    const auto address = reinterpret_cast<DevicePtr>(&local);
    CU_MUST(cuda, kInvalidValue,
            cuda.cuPointerGetAttribute(&type, Attribute::kMemoryType, address));
    BL_MUST(type == 5);
    std::array which{Attribute::kMemoryType, Attribute::kDeviceOrdinal, Attribute::kRangeStartAddr};
    std::array<void*, 3> out{&type, &ordinal, &start};
    CU_MUST(cuda, kSuccess, cuda.cuPointerGetAttributes(3, which.data(), out.data(), address));
    BL_MUST(type == 0 && ordinal == -2 && start == 0);
  });
}

TEST_CASE("pointer: several attributes at once", "[pointer]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(100);
    unsigned type = 0;
    std::size_t size = 0;
    void* host = &type;
    std::array which{Attribute::kMemoryType, Attribute::kRangeSize, Attribute::kHostPointer};
    std::array<void*, 3> out{&type, &size, &host};
    CU_MUST(cuda, kSuccess, cuda.cuPointerGetAttributes(3, which.data(), out.data(), device));
    BL_MUST(type == 2 && size == 100 && host == nullptr);
    CU_MUST(cuda, kInvalidValue, cuda.cuPointerGetAttributes(0, which.data(), out.data(), device));
    CU_MUST(cuda, kInvalidValue, cuda.cuPointerGetAttributes(3, nullptr, out.data(), device));
    which[2] = static_cast<Attribute>(99);
    CU_MUST(cuda, kInvalidValue, cuda.cuPointerGetAttributes(3, which.data(), out.data(), device));
  });
}

TEST_CASE("pointer: unknown attributes, and those of newer drivers", "[pointer]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(100);
    unsigned long long value = 0;
    for (const int number : {0, 5, 21, 77})
      CU_MUST(cuda, kInvalidValue,
              cuda.cuPointerGetAttribute(&value, static_cast<Attribute>(number), device));
    CU_MUST(cuda, kInvalidValue,
            cuda.cuPointerGetAttribute(nullptr, Attribute::kMemoryType, device));
    cuda.set("driver=11000");
    CU_MUST(cuda, kInvalidValue,
            cuda.cuPointerGetAttribute(&value, Attribute::kIsGpuDirectRdmaCapable, device));
  });
}

TEST_CASE("pointer: sync_memops can be set, and nothing else", "[pointer]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(100);
    const unsigned yes = 1;
    BL_MUST(attribute<unsigned>(cuda, Attribute::kSyncMemops, device) == 0);
    CU_MUST(cuda, kSuccess, cuda.cuPointerSetAttribute(&yes, Attribute::kSyncMemops, device + 50));
    BL_MUST(attribute<unsigned>(cuda, Attribute::kSyncMemops, device) == 1);
    CU_MUST(cuda, kInvalidValue, cuda.cuPointerSetAttribute(&yes, Attribute::kMapped, device));
    CU_MUST(cuda, kInvalidValue,
            cuda.cuPointerSetAttribute(nullptr, Attribute::kSyncMemops, device));
    CU_MUST(cuda, kInvalidValue, cuda.cuPointerSetAttribute(&yes, Attribute::kSyncMemops, 64));
  });
}

TEST_CASE("pointer: buffer IDs are not reused", "[pointer]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr first = cuda.allocate(100);
    const auto number = attribute<unsigned long long>(cuda, Attribute::kBufferId, first);
    BL_MUST(number == attribute<unsigned long long>(cuda, Attribute::kBufferId, first + 99));
    CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(first));
    const DevicePtr second = cuda.allocate(100);
    BL_MUST(number != attribute<unsigned long long>(cuda, Attribute::kBufferId, second));
  });
}

TEST_CASE("pointer: reserved addresses, mapped and not", "[pointer]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    MemAllocationProp prop{};
    prop.type = softnic::gpu::kAllocationPinned;
    prop.location = {softnic::gpu::kLocationDevice, 0};
    prop.gpu_direct_rdma_capable = 1;
    AllocationHandle handle = 0;
    DevicePtr start = 0;
    DevicePtr first = 0;
    std::size_t size = 0;
    CU_MUST(cuda, kSuccess, cuda.cuMemCreate(&handle, kUnit, &prop, 0));
    CU_MUST(cuda, kSuccess, cuda.cuMemAddressReserve(&start, 2 * kUnit, 0, 0, 0));
    CU_MUST(cuda, kSuccess, cuda.cuMemMap(start + kUnit, kUnit, 0, handle, 0));
    const DevicePtr mapped = start + kUnit + 5;
    BL_MUST(attribute<unsigned>(cuda, Attribute::kMapped, start) == 0);
    BL_MUST(attribute<unsigned>(cuda, Attribute::kMapped, mapped) == 1);
    BL_MUST(attribute<unsigned>(cuda, Attribute::kMemoryType, mapped) == 2);
    BL_MUST(attribute<Context*>(cuda, Attribute::kContext, mapped) == nullptr);
    BL_MUST(attribute<DevicePtr>(cuda, Attribute::kRangeStartAddr, mapped) == start);
    BL_MUST(attribute<std::size_t>(cuda, Attribute::kRangeSize, mapped) == 2 * kUnit);
    BL_MUST(attribute<DevicePtr>(cuda, Attribute::kMappingBaseAddr, mapped) == start + kUnit);
    BL_MUST(attribute<std::size_t>(cuda, Attribute::kMappingSize, mapped) == kUnit);
    BL_MUST(attribute<unsigned>(cuda, Attribute::kIsLegacyIpcCapable, mapped) == 0);
    BL_MUST(attribute<unsigned>(cuda, Attribute::kIsGpuDirectRdmaCapable, mapped) == 1);
    BL_MUST(attribute<unsigned>(cuda, Attribute::kIsGpuDirectRdmaCapable, start) == 0);
    CU_MUST(cuda, kInvalidValue, cuda.cuPointerGetAttribute(&size, Attribute::kMemoryType, start));
    CU_MUST(cuda, kSuccess, cuda.cuMemGetAddressRange_v2(&first, &size, mapped));
    BL_MUST(first == start + kUnit && size == kUnit);
    CU_MUST(cuda, kNotFound, cuda.cuMemGetAddressRange_v2(&first, &size, start));
  });
}

}  // namespace
