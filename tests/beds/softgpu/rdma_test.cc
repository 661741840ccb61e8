// SPDX-License-Identifier: Apache-2.0
// Access of NICs to device memory: handles of address ranges, and peer memory.
#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <vector>

#include "common/base/fd.h"
#include "tests/beds/softgpu/mapped.h"
#include "tests/support/catch.h"

namespace {

using namespace beeline::test;
using beeline::UniqueFd;
using softnic::gpu::DeviceAttribute;
using softnic::gpu::kFlushToAllDevices;
using softnic::gpu::kFlushToOwner;
using softnic::gpu::kRangeFlagPcie;
using softnic::gpu::kRangeHandleDmaBufFd;
using softnic::gpu::PointerAttribute;

std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

unsigned char byte_at(Cuda& cuda, DevicePtr address) {
  unsigned char byte = 0;
  BL_MUST_OK(cuda.softgpu_read(pointer(address), &byte, 1));
  return byte;
}

CuResult ask(Cuda& cuda, DevicePtr address, std::size_t size, unsigned long long flags = 0) {
  int fd = -1;
  const CuResult result =
      cuda.cuMemGetHandleForAddressRange(&fd, address, size, kRangeHandleDmaBufFd, flags);
  BL_MUST((fd >= 0) == (result == CuResult::kSuccess));
  if (fd >= 0) close(fd);
  return result;
}

TEST_CASE("rdma: a handle covers exactly its range", "[rdma]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(16 * page());
    const int fd = cuda.handle(device + 3 * page(), 2 * page());
    std::uint64_t length = 0;
    const Mapped nic = map_dmabuf(cuda, fd, &length);
    BL_MUST(length == 2 * page());
    nic.bytes()[0] = 0xa1;
    nic.bytes()[length - 1] = 0xa2;
    BL_MUST(byte_at(cuda, device + 3 * page()) == 0xa1);
    BL_MUST(byte_at(cuda, device + 5 * page() - 1) == 0xa2);
    CU_MUST(cuda, kSuccess, cuda.cuMemsetD8_v2(device + 4 * page(), 0x77, 1));
    BL_MUST(nic.bytes()[page()] == 0x77);
    struct stat facts {};
    BL_MUST(fstat(fd, &facts) == 0 && static_cast<std::uint64_t>(facts.st_size) == length);
    BL_MUST((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  });
}

TEST_CASE("rdma: a handle's range is whole pages of one allocation", "[rdma]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(3 * page() + 100);
    CU_MUST(cuda, kInvalidValue, ask(cuda, device + 512, page()));
    CU_MUST(cuda, kInvalidValue, ask(cuda, device, page() + 512));
    CU_MUST(cuda, kInvalidValue, ask(cuda, device, 0));
    CU_MUST(cuda, kInvalidValue, ask(cuda, device, 5 * page()));
    CU_MUST(cuda, kInvalidValue, ask(cuda, device + page(), SIZE_MAX / page() * page()));
    CU_MUST(cuda, kInvalidValue, ask(cuda, 16 * page(), page()));
    // The range may include the page in which the allocation ends.
    CU_MUST(cuda, kSuccess, ask(cuda, device, 4 * page()));
    CU_MUST(cuda, kSuccess, ask(cuda, device + 3 * page(), page()));
    int fd = -1;
    CU_MUST(cuda, kInvalidValue, cuda.cuMemGetHandleForAddressRange(&fd, device, page(), 2, 0));
    CU_MUST(cuda, kInvalidValue,
            cuda.cuMemGetHandleForAddressRange(nullptr, device, page(), kRangeHandleDmaBufFd, 0));
    CU_MUST(cuda, kInvalidValue, ask(cuda, device, page(), 4));
  });
}

// As a real driver places a small allocation behind another one.
TEST_CASE("rdma: a packed allocation begins and ends within pages", "[rdma]") {
  in_process(
      [](Cuda& cuda) {
        cuda.start();
        const DevicePtr device = cuda.allocate(2 * page());
        const DevicePtr start = device - 512;
        BL_MUST(start % page() == 0);
        CU_MUST(cuda, kSuccess, cuda.cuMemsetD8_v2(device, 0x44, 2 * page()));
        CU_MUST(cuda, kInvalidValue, cuda.cuMemsetD8_v2(start, 0x44, page()));
        CU_MUST(cuda, kInvalidValue, cuda.cuMemsetD8_v2(device, 0x44, 2 * page() + 1));
        unsigned type = 0;
        const auto ask_type = [&](DevicePtr address) {
          return cuda.cuPointerGetAttribute(&type, PointerAttribute::kMemoryType, address);
        };
        CU_MUST(cuda, kSuccess, ask_type(device + 2 * page() - 1));
        CU_MUST(cuda, kInvalidValue, ask_type(device + 2 * page()));
        CU_MUST(cuda, kInvalidValue, ask_type(device - 1));
        CU_MUST(cuda, kInvalidValue, ask(cuda, start, 4 * page()));
        CU_MUST(cuda, kInvalidValue, ask(cuda, start + 3 * page(), page()));
        const UniqueFd handle(cuda.handle(start, 3 * page()));
        std::uint64_t length = 0;
        const Mapped nic = map_dmabuf(cuda, handle.get(), &length);
        BL_MUST(length == 3 * page());
        BL_MUST(nic.bytes()[511] == 0 && nic.bytes()[512] == 0x44);
        BL_MUST(nic.bytes()[512 + 2 * page()] == 0);
        CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(device));
        CU_MUST(cuda, kInvalidValue, ask(cuda, start, page()));
      },
      {{"SOFTGPU", "packed=yes"}});
}

TEST_CASE("rdma: host memory has no handle", "[rdma]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    void* host = nullptr;
    CU_MUST(cuda, kSuccess, cuda.cuMemAllocHost_v2(&host, page()));
    CU_MUST(cuda, kNotSupported, ask(cuda, reinterpret_cast<DevicePtr>(host), page()));
    int pages = -1;
    std::uint64_t offset = 0;
    BL_MUST(cuda.softgpu_peermem(host, page(), &pages, &offset) == EFAULT);
  });
}

TEST_CASE("rdma: a descriptor that is not a handle is refused", "[rdma]") {
  in_process([](Cuda& cuda) {
    int pages = -1;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    const auto knows = [&](int fd) { return cuda.softgpu_dmabuf(fd, &pages, &offset, &length); };
    BL_MUST(knows(0) == ENOENT && knows(-1) == ENOENT);
    cuda.start();
    const int fd = cuda.handle(cuda.allocate(page()), page());
    const int memory = memfd_create("other", 0);
    BL_MUST(memory >= 0 && knows(memory) == ENOENT);
    const int copy = dup(fd);
    BL_MUST(knows(copy) == 0);
    close(pages);
    close(fd);
    BL_MUST(knows(copy) == 0);
    close(pages);
    close(copy);
    BL_MUST(knows(copy) == ENOENT);
  });
}

TEST_CASE("rdma: freed memory exists as long as it has users", "[rdma]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(page());
    CU_MUST(cuda, kSuccess, cuda.cuMemsetD8_v2(device, 0x33, page()));
    const int fd = cuda.handle(device, page());
    CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(device));
    const DevicePtr next = cuda.allocate(page());
    std::uint64_t length = 0;
    const Mapped late = map_dmabuf(cuda, fd, &length);
    BL_MUST(late.bytes()[10] == 0x33);
    close(fd);
    late.bytes()[10] = 0x44;
    BL_MUST(byte_at(cuda, next + 10) == 0);
    CU_MUST(cuda, kInvalidValue, ask(cuda, device == next ? 0 : device, page()));
  });
}

TEST_CASE("rdma: pinned memory is counted until it is released", "[rdma]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    std::size_t before = 0;
    std::size_t after = 0;
    CU_MUST(cuda, kSuccess, cuda.cuMemGetInfo_v2(&before, nullptr));
    const DevicePtr device = cuda.allocate(4 * page());
    BL_MUST(cuda.softgpu_open_handles() == 0 && cuda.softgpu_pinned() == 0);
    const int fd = cuda.handle(device, 2 * page());
    BL_MUST(cuda.softgpu_open_handles() == 1 && cuda.softgpu_pinned() == 0);
    std::uint64_t length = 0;
    {
      const Mapped first = map_dmabuf(cuda, fd, &length);
      BL_MUST(cuda.softgpu_pinned() == 2 * page());
      {
        const Mapped second = map_peermem(cuda, device, 100);
        BL_MUST(cuda.softgpu_pinned() == 2 * page() + 100);
      }
      BL_MUST(cuda.softgpu_pinned() == 2 * page());
      close(fd);
      BL_MUST(cuda.softgpu_open_handles() == 0);
      CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(device));
      CU_MUST(cuda, kSuccess, cuda.cuMemGetInfo_v2(&after, nullptr));
      BL_MUST(after < before);
    }
    BL_MUST(cuda.softgpu_pinned() == 0);
    CU_MUST(cuda, kSuccess, cuda.cuMemGetInfo_v2(&after, nullptr));
    BL_MUST(after == before);
  });
}

TEST_CASE("rdma: closed handles leave nothing behind", "[rdma]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(page());
    const int first = dup(0);
    close(first);
    for (int i = 0; i < 2000; ++i) close(cuda.handle(device, page()));
    BL_MUST(cuda.softgpu_open_handles() == 0);
    const int last = dup(0);
    BL_MUST(last == first);
  });
}

TEST_CASE("rdma: peer memory is a range of the pages of one allocation", "[rdma]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(10000);
    const Mapped nic = map_peermem(cuda, device + 4099, 300);
    nic.bytes()[0] = 0x51;
    BL_MUST(byte_at(cuda, device + 4099) == 0x51);
    int pages = -1;
    std::uint64_t offset = 0;
    const auto asks = [&](DevicePtr address, std::size_t length) {
      return cuda.softgpu_peermem(pointer(address), length, &pages, &offset);
    };
    BL_MUST(asks(device, 3 * page() + 1) == EFAULT);
    BL_MUST(asks(device + 3 * page(), 1) == EFAULT);
    BL_MUST(asks(reinterpret_cast<DevicePtr>(&pages), 4) == EFAULT);
    BL_MUST(asks(device, SIZE_MAX) == EFAULT);
    cuda.set("peermem=no");
    BL_MUST(asks(device, 10) == EOPNOTSUPP);
    BL_MUST(asks(reinterpret_cast<DevicePtr>(&pages), 4) == EFAULT);
    cuda.set("gdr=no");
    BL_MUST(asks(device, 10) == EOPNOTSUPP);
    cuda.set("dmabuf=no");
    BL_MUST(asks(device, 10) == 0);
    BL_MUST(pages >= 0);
  });
}

TEST_CASE("rdma: a GPU or driver without dma-buf says so", "[rdma]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(page());
    for (const char* settings :
         {"dmabuf=no", "gdr=no", "driver=11060", "missing=cuMemGetHandleForAddressRange"}) {
      cuda.set(settings);
      CU_MUST(cuda, kNotSupported, ask(cuda, device, page()));
    }
    cuda.set("driver=11070,peermem=no");
    CU_MUST(cuda, kSuccess, ask(cuda, device, page()));
  });
}

TEST_CASE("rdma: a coherent GPU requires the PCIe flag", "[rdma]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(page());
    CU_MUST(cuda, kNotSupported, ask(cuda, device, page(), kRangeFlagPcie));
    const auto is_coherent = [&] {
      int value = -1;
      CU_MUST(cuda, kSuccess,
              cuda.cuDeviceGetAttribute(
                  &value, DeviceAttribute::kPageableMemoryAccessUsesHostPageTables, 0));
      return value;
    };
    BL_MUST(is_coherent() == 0);
    cuda.set("coherent=yes");
    BL_MUST(is_coherent() == 1);
    CU_MUST(cuda, kSuccess, ask(cuda, device, page(), kRangeFlagPcie));
    CU_MUST(cuda, kNotSupported, ask(cuda, device, page()));
    cuda.set("coherent=yes,driver=12070");
    CU_MUST(cuda, kInvalidValue, ask(cuda, device, page(), kRangeFlagPcie));
  });
}

TEST_CASE("rdma: BAR1 limits the pinned memory", "[rdma]") {
  in_process(
      [](Cuda& cuda) {
        cuda.start();
        constexpr std::size_t kBar = std::size_t{2} << 20;
        const DevicePtr device = cuda.allocate(2 * kBar);
        const int fd = cuda.handle(device, 2 * kBar);
        int pages = -1;
        std::uint64_t offset = 0;
        std::uint64_t length = 0;
        BL_MUST(cuda.softgpu_dmabuf(fd, &pages, &offset, &length) == ENOMEM);
        {
          const Mapped first = map_peermem(cuda, device, kBar - 10);
          BL_MUST(cuda.softgpu_peermem(pointer(device), 11, &pages, &offset) == ENOMEM);
          const Mapped second = map_peermem(cuda, device, 10);
        }
        const Mapped all = map_peermem(cuda, device + 5, kBar);
        cuda.set("");
        const Mapped more = map_dmabuf(cuda, fd, &length);
      },
      {{"SOFTGPU", "bar1=2M"}});
}

TEST_CASE("rdma: the flush is supported if the settings say so", "[rdma]") {
  in_process([](Cuda& cuda) {
    static int revealed = 0;
    cuda.softgpu_at_flush([] { ++revealed; });
    CU_MUST(cuda, kNotInitialized, cuda.cuFlushGPUDirectRDMAWrites(0, kFlushToOwner));
    CU_MUST(cuda, kSuccess, cuda.cuInit(0));
    CU_MUST(cuda, kInvalidContext, cuda.cuFlushGPUDirectRDMAWrites(0, kFlushToOwner));
    cuda.start();
    BL_MUST(revealed == 0);
    CU_MUST(cuda, kSuccess, cuda.cuFlushGPUDirectRDMAWrites(0, kFlushToOwner));
    CU_MUST(cuda, kSuccess, cuda.cuFlushGPUDirectRDMAWrites(0, kFlushToAllDevices));
    BL_MUST(revealed == 2);
    CU_MUST(cuda, kInvalidValue, cuda.cuFlushGPUDirectRDMAWrites(0, 1));
    CU_MUST(cuda, kInvalidValue, cuda.cuFlushGPUDirectRDMAWrites(1, kFlushToOwner));
    for (const char* settings : {"flush=memops", "flush=none", "driver=11020"}) {
      cuda.set(settings);
      CU_MUST(cuda, kNotSupported, cuda.cuFlushGPUDirectRDMAWrites(0, kFlushToOwner));
    }
    BL_MUST(revealed == 2);
    cuda.set("flush=host");
    CU_MUST(cuda, kSuccess, cuda.cuFlushGPUDirectRDMAWrites(0, kFlushToOwner));
    BL_MUST(revealed == 3);
  });
}

}  // namespace
