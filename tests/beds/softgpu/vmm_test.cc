// SPDX-License-Identifier: Apache-2.0
// Physical memory, reserved addresses, and mappings.
#include <vector>

#include "tests/beds/softgpu/mapped.h"
#include "tests/support/catch.h"

namespace {

using namespace beeline::test;
using softnic::gpu::AllocationHandle;
using softnic::gpu::MemAccessDesc;
using softnic::gpu::MemAllocationProp;
using softnic::gpu::MemLocation;
using softnic::gpu::PointerAttribute;

constexpr std::size_t kVmmUnit = std::size_t{2} << 20;

MemAllocationProp prop_of(int gpu, bool rdma = true) {
  MemAllocationProp prop{};
  prop.type = softnic::gpu::kAllocationPinned;
  prop.location = {softnic::gpu::kLocationDevice, gpu};
  prop.gpu_direct_rdma_capable = rdma ? 1 : 0;
  return prop;
}

AllocationHandle create(Cuda& cuda, std::size_t size, const MemAllocationProp& prop = prop_of(0)) {
  AllocationHandle handle = 0;
  CU_MUST(cuda, kSuccess, cuda.cuMemCreate(&handle, size, &prop, 0));
  return handle;
}

DevicePtr reserve(Cuda& cuda, std::size_t size) {
  DevicePtr start = 0;
  CU_MUST(cuda, kSuccess, cuda.cuMemAddressReserve(&start, size, 0, 0, 0));
  BL_MUST(start % kVmmUnit == 0);
  return start;
}

void give_access(Cuda& cuda, DevicePtr start, std::size_t size, int access = 3) {
  const MemAccessDesc wanted{{softnic::gpu::kLocationDevice, 0}, access};
  CU_MUST(cuda, kSuccess, cuda.cuMemSetAccess(start, size, &wanted, 1));
}

// Two allocations, side by side.
struct Pair {
  explicit Pair(Cuda& cuda)
      : first(create(cuda, kVmmUnit)),
        second(create(cuda, kVmmUnit)),
        start(reserve(cuda, 3 * kVmmUnit)) {
    CU_MUST(cuda, kSuccess, cuda.cuMemMap(start, kVmmUnit, 0, first, 0));
    CU_MUST(cuda, kSuccess, cuda.cuMemMap(start + kVmmUnit, kVmmUnit, 0, second, 0));
    give_access(cuda, start, 2 * kVmmUnit);
  }
  AllocationHandle first;
  AllocationHandle second;
  DevicePtr start;
};

TEST_CASE("vmm: sizes are multiples of the granularity", "[vmm]") {
  in_process([](Cuda& cuda) {
    CU_MUST(cuda, kSuccess, cuda.cuInit(0));
    const MemAllocationProp prop = prop_of(0);
    std::size_t unit = 0;
    for (const int option : {0, 1}) {
      CU_MUST(cuda, kSuccess, cuda.cuMemGetAllocationGranularity(&unit, &prop, option));
      BL_MUST(unit == kVmmUnit);
    }
    AllocationHandle handle = 0;
    DevicePtr start = 0;
    CU_MUST(cuda, kInvalidValue, cuda.cuMemGetAllocationGranularity(&unit, &prop, 2));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemCreate(&handle, kVmmUnit / 2, &prop, 0));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemCreate(&handle, 0, &prop, 0));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemCreate(&handle, kVmmUnit, &prop, 1));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemCreate(&handle, kVmmUnit, nullptr, 0));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemAddressReserve(&start, 4096, 0, 0, 0));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemAddressReserve(&start, kVmmUnit, 3, 0, 0));
    CU_MUST(cuda, kSuccess, cuda.cuMemAddressReserve(&start, kVmmUnit, 64 * kVmmUnit, 0, 0));
    BL_MUST(start % (64 * kVmmUnit) == 0);
  });
}

TEST_CASE("vmm: memory that is not of a GPU, or to be shared, is refused", "[vmm]") {
  in_process([](Cuda& cuda) {
    CU_MUST(cuda, kSuccess, cuda.cuInit(0));
    AllocationHandle handle = 0;
    MemAllocationProp prop = prop_of(1);
    CU_MUST(cuda, kInvalidDevice, cuda.cuMemCreate(&handle, kVmmUnit, &prop, 0));
    prop = prop_of(0);
    prop.location.type = 2;
    CU_MUST(cuda, kNotSupported, cuda.cuMemCreate(&handle, kVmmUnit, &prop, 0));
    prop = prop_of(0);
    prop.requested_handle_types = softnic::gpu::kHandleTypePosixFd;
    CU_MUST(cuda, kNotSupported, cuda.cuMemCreate(&handle, kVmmUnit, &prop, 0));
    prop = prop_of(0);
    prop.type = 0;
    CU_MUST(cuda, kInvalidValue, cuda.cuMemCreate(&handle, kVmmUnit, &prop, 0));
    cuda.set("memory=1M");
    prop = prop_of(0);
    CU_MUST(cuda, kOutOfMemory, cuda.cuMemCreate(&handle, kVmmUnit, &prop, 0));
    cuda.set("gdr=no");
    CU_MUST(cuda, kInvalidValue, cuda.cuMemCreate(&handle, kVmmUnit, &prop, 0));
    prop = prop_of(0, false);
    CU_MUST(cuda, kSuccess, cuda.cuMemCreate(&handle, kVmmUnit, &prop, 0));
  });
}

TEST_CASE("vmm: mapped memory holds bytes once the GPU has access", "[vmm]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const AllocationHandle handle = create(cuda, 2 * kVmmUnit);
    const DevicePtr start = reserve(cuda, 4 * kVmmUnit);
    CU_MUST(cuda, kInvalidValue, cuda.cuMemsetD8_v2(start, 1, 1));
    CU_MUST(cuda, kSuccess, cuda.cuMemMap(start + kVmmUnit, 2 * kVmmUnit, 0, handle, 0));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemsetD8_v2(start + kVmmUnit, 1, 1));
    unsigned char byte = 9;
    give_access(cuda, start + kVmmUnit, 2 * kVmmUnit, 1);
    CU_MUST(cuda, kSuccess, cuda.cuMemcpyDtoH_v2(&byte, start + kVmmUnit, 1));
    BL_MUST(byte == 0);
    CU_MUST(cuda, kInvalidValue, cuda.cuMemsetD8_v2(start + kVmmUnit, 1, 1));
    give_access(cuda, start + kVmmUnit, 2 * kVmmUnit);
    CU_MUST(cuda, kSuccess, cuda.cuMemsetD8_v2(start + kVmmUnit, 1, 2 * kVmmUnit));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemsetD8_v2(start + kVmmUnit, 1, 2 * kVmmUnit + 1));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemsetD8_v2(start, 1, kVmmUnit + 1));
    unsigned long long access = 0;
    const MemLocation here{softnic::gpu::kLocationDevice, 0};
    CU_MUST(cuda, kSuccess, cuda.cuMemGetAccess(&access, &here, start + kVmmUnit));
    BL_MUST(access == 3);
    CU_MUST(cuda, kInvalidValue, cuda.cuMemGetAccess(&access, &here, start));
  });
}

TEST_CASE("vmm: mapped memory exists without its handle", "[vmm]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const AllocationHandle handle = create(cuda, kVmmUnit);
    const DevicePtr start = reserve(cuda, 2 * kVmmUnit);
    CU_MUST(cuda, kSuccess, cuda.cuMemMap(start, kVmmUnit, 0, handle, 0));
    CU_MUST(cuda, kSuccess, cuda.cuMemRelease(handle));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemRelease(handle));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemMap(start + kVmmUnit, kVmmUnit, 0, handle, 0));
    give_access(cuda, start, kVmmUnit);
    CU_MUST(cuda, kSuccess, cuda.cuMemsetD8_v2(start, 0x21, kVmmUnit));
    AllocationHandle again = 0;
    auto* const inside = reinterpret_cast<void*>(start + 77);
    CU_MUST(cuda, kSuccess, cuda.cuMemRetainAllocationHandle(&again, inside));
    CU_MUST(cuda, kSuccess, cuda.cuMemMap(start + kVmmUnit, kVmmUnit, 0, again, 0));
    CU_MUST(cuda, kSuccess, cuda.cuMemUnmap(start, kVmmUnit));
    unsigned char byte = 0;
    BL_MUST(cuda.softgpu_read(inside, &byte, 1) == EFAULT);
    BL_MUST_OK(cuda.softgpu_read(reinterpret_cast<void*>(start + kVmmUnit), &byte, 1));
    BL_MUST(byte == 0x21);
    CU_MUST(cuda, kInvalidValue, cuda.cuMemRetainAllocationHandle(&again, inside));
    CU_MUST(cuda, kSuccess, cuda.cuMemRelease(again));
  });
}

TEST_CASE("vmm: a handle is reference-counted", "[vmm]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const Pair pair(cuda);
    AllocationHandle again = 0;
    auto* const inside = reinterpret_cast<void*>(pair.start + 1);
    CU_MUST(cuda, kSuccess, cuda.cuMemRetainAllocationHandle(&again, inside));
    BL_MUST(again == pair.first);
    CU_MUST(cuda, kSuccess, cuda.cuMemRelease(again));
    CU_MUST(cuda, kSuccess, cuda.cuMemMap(pair.start + 2 * kVmmUnit, kVmmUnit, 0, pair.first, 0));
    CU_MUST(cuda, kSuccess, cuda.cuMemRelease(pair.first));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemRelease(pair.first));
  });
}

TEST_CASE("vmm: memory is freed with its last user", "[vmm]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    std::size_t before = 0;
    std::size_t after = 0;
    CU_MUST(cuda, kSuccess, cuda.cuMemGetInfo_v2(&before, nullptr));
    const Pair pair(cuda);
    const int fd = cuda.handle(pair.start, kVmmUnit);
    CU_MUST(cuda, kSuccess, cuda.cuMemUnmap(pair.start, 2 * kVmmUnit));
    CU_MUST(cuda, kSuccess, cuda.cuMemRelease(pair.first));
    CU_MUST(cuda, kSuccess, cuda.cuMemRelease(pair.second));
    CU_MUST(cuda, kSuccess, cuda.cuMemGetInfo_v2(&after, nullptr));
    BL_MUST(after == before - kVmmUnit);
    close(fd);
    CU_MUST(cuda, kSuccess, cuda.cuMemGetInfo_v2(&after, nullptr));
    BL_MUST(after == before);
    CU_MUST(cuda, kSuccess, cuda.cuMemAddressFree(pair.start, 3 * kVmmUnit));
  });
}

TEST_CASE("vmm: mappings do not overlap and are unmapped as a whole", "[vmm]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const Pair pair(cuda);
    const AllocationHandle wide = create(cuda, 2 * kVmmUnit);
    CU_MUST(cuda, kInvalidValue, cuda.cuMemMap(pair.start, kVmmUnit, 0, wide, 0));
    CU_MUST(cuda, kInvalidValue,
            cuda.cuMemMap(pair.start + 2 * kVmmUnit, 2 * kVmmUnit, 0, wide, 0));
    CU_MUST(cuda, kInvalidValue,
            cuda.cuMemMap(pair.start + 2 * kVmmUnit, kVmmUnit, kVmmUnit, wide, 0));
    CU_MUST(cuda, kInvalidValue,
            cuda.cuMemMap(pair.start + 2 * kVmmUnit + 4096, kVmmUnit, 0, wide, 0));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemMap(pair.start + 2 * kVmmUnit, kVmmUnit, 0, wide, 1));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemMap(cuda.allocate(kVmmUnit), kVmmUnit, 0, wide, 0));
    CU_MUST(cuda, kSuccess, cuda.cuMemMap(pair.start + 2 * kVmmUnit, kVmmUnit, 0, wide, 0));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemUnmap(pair.start, kVmmUnit / 2));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemUnmap(pair.start, 4 * kVmmUnit));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemAddressFree(pair.start, 3 * kVmmUnit));
    CU_MUST(cuda, kSuccess, cuda.cuMemUnmap(pair.start, 3 * kVmmUnit));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemUnmap(pair.start, kVmmUnit));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemAddressFree(pair.start, kVmmUnit));
    CU_MUST(cuda, kSuccess, cuda.cuMemAddressFree(pair.start, 3 * kVmmUnit));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemAddressFree(pair.start, 3 * kVmmUnit));
    const DevicePtr start = reserve(cuda, 2 * kVmmUnit);
    CU_MUST(cuda, kSuccess, cuda.cuMemMap(start, 2 * kVmmUnit, 0, wide, 0));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemMap(start + kVmmUnit, kVmmUnit, 0, pair.first, 0));
  });
}

TEST_CASE("vmm: copies can cover adjacent allocations", "[vmm]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const Pair pair(cuda);
    std::vector<unsigned char> sent(3000);
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<unsigned char>(i % 251);
    std::vector<unsigned char> back(sent.size());
    const DevicePtr middle = pair.start + kVmmUnit - 1000;
    CU_MUST(cuda, kSuccess, cuda.cuMemcpyHtoD_v2(middle, sent.data(), sent.size()));
    const DevicePtr flat = cuda.allocate(sent.size());
    CU_MUST(cuda, kSuccess, cuda.cuMemcpyDtoD_v2(flat, middle, sent.size()));
    CU_MUST(cuda, kSuccess, cuda.cuMemcpyDtoD_v2(middle - 500, flat, sent.size()));
    CU_MUST(cuda, kSuccess, cuda.cuMemcpyDtoH_v2(back.data(), middle - 500, sent.size()));
    BL_MUST(back == sent);
  });
}

TEST_CASE("vmm: a handle is of one allocation", "[vmm]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const Pair pair(cuda);
    int fd = -1;
    CU_MUST(cuda, kInvalidValue,
            cuda.cuMemGetHandleForAddressRange(&fd, pair.start, 2 * kVmmUnit, 1, 0));
    CU_MUST(cuda, kInvalidValue,
            cuda.cuMemGetHandleForAddressRange(&fd, pair.start + kVmmUnit, 2 * kVmmUnit, 1, 0));
    std::uint64_t length = 0;
    const Mapped nic = map_dmabuf(cuda, cuda.handle(pair.start + kVmmUnit, kVmmUnit), &length);
    nic.bytes()[5] = 0x66;
    unsigned char byte = 0;
    CU_MUST(cuda, kSuccess, cuda.cuMemcpyDtoH_v2(&byte, pair.start + kVmmUnit + 5, 1));
    BL_MUST(byte == 0x66);
    int pages = -1;
    std::uint64_t offset = 0;
    const auto peermem = [&](DevicePtr address, std::size_t size) {
      return cuda.softgpu_peermem(reinterpret_cast<void*>(address), size, &pages, &offset);
    };
    BL_MUST(peermem(pair.start + kVmmUnit - 1, 2) == EFAULT);
    BL_MUST(peermem(pair.start + 2 * kVmmUnit, 2) == EFAULT);
    BL_MUST(peermem(pair.start + kVmmUnit, 2) == 0);
  });
}

TEST_CASE("vmm: peer memory needs memory that was created for it", "[vmm]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const AllocationHandle handle = create(cuda, kVmmUnit, prop_of(0, false));
    const DevicePtr start = reserve(cuda, kVmmUnit);
    CU_MUST(cuda, kSuccess, cuda.cuMemMap(start, kVmmUnit, 0, handle, 0));
    give_access(cuda, start, kVmmUnit);
    int pages = -1;
    std::uint64_t offset = 0;
    BL_MUST(cuda.softgpu_peermem(reinterpret_cast<void*>(start), 8, &pages, &offset) == EFAULT);
    unsigned capable = 9;
    CU_MUST(cuda, kSuccess,
            cuda.cuPointerGetAttribute(&capable, PointerAttribute::kIsGpuDirectRdmaCapable, start));
    BL_MUST(capable == 0);
  });
}

TEST_CASE("vmm: the properties of a handle can be queried", "[vmm]") {
  in_process(
      [](Cuda& cuda) {
        CU_MUST(cuda, kSuccess, cuda.cuInit(0));
        const AllocationHandle handle = create(cuda, kVmmUnit, prop_of(1));
        MemAllocationProp prop{};
        CU_MUST(cuda, kSuccess, cuda.cuMemGetAllocationPropertiesFromHandle(&prop, handle));
        BL_MUST(prop.location.id == 1 && prop.gpu_direct_rdma_capable == 1);
        CU_MUST(cuda, kInvalidValue, cuda.cuMemGetAllocationPropertiesFromHandle(&prop, 1));
      },
      {{"SOFTGPU", "gpus=2"}});
}

}  // namespace
