// SPDX-License-Identifier: Apache-2.0
// Device memory: allocation, access, copies and fills.
#include <sys/mman.h>

#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/beds/softgpu/process.h"
#include "tests/support/catch.h"

namespace {

using namespace beeline::test;

DevicePtr address_of(const void* memory) { return reinterpret_cast<DevicePtr>(memory); }

std::vector<unsigned char> pattern(std::size_t size, unsigned char seed) {
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<unsigned char>(seed + i * 7 + (i >> 8));
  return bytes;
}

std::vector<unsigned char> truth(Cuda& cuda, DevicePtr address, std::size_t size) {
  std::vector<unsigned char> bytes(size);
  BL_MUST_OK(cuda.softgpu_read(pointer(address), bytes.data(), size));
  return bytes;
}

#ifndef __SANITIZE_ADDRESS__  // which turns the signal into words of its own
TEST_CASE("memory: a CPU access to a device pointer is a SIGSEGV", "[memory]") {
  const CudaEnding reads = end_of_process([](Cuda& cuda) {
    cuda.start();
    const volatile char* const device = static_cast<char*>(pointer(cuda.allocate(4096)));
    static_cast<void>(*device);
  });
  REQUIRE(reads.signal == SIGSEGV);
  const CudaEnding writes = end_of_process([](Cuda& cuda) {
    cuda.start();
    volatile char* const device = static_cast<char*>(pointer(cuda.allocate(100000)));
    device[99999] = 1;
  });
  REQUIRE(writes.signal == SIGSEGV);
}
#endif

TEST_CASE("memory: new memory is zero and does not overlap other memory", "[memory]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr first = cuda.allocate(1000);
    const DevicePtr second = cuda.allocate(1000);
    BL_MUST(first != second);
    CU_MUST(cuda, kSuccess, cuda.cuMemsetD8_v2(first, 0xff, 1000));
    BL_MUST(truth(cuda, second, 1000) == std::vector<unsigned char>(1000, 0));
    BL_MUST(truth(cuda, first, 1000) == std::vector<unsigned char>(1000, 0xff));
  });
}

TEST_CASE("memory: bytes are copied to, between and from devices", "[memory]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    constexpr std::size_t kSize = 300000;
    const DevicePtr first = cuda.allocate(kSize);
    const DevicePtr second = cuda.allocate(kSize);
    const std::vector<unsigned char> sent = pattern(kSize - 20, 3);
    std::vector<unsigned char> back(sent.size());
    CU_MUST(cuda, kSuccess, cuda.cuMemcpyHtoD_v2(first + 7, sent.data(), sent.size()));
    CU_MUST(cuda, kSuccess, cuda.cuMemcpyDtoD_v2(second + 3, first + 7, sent.size()));
    CU_MUST(cuda, kSuccess, cuda.cuMemcpyDtoH_v2(back.data(), second + 3, sent.size()));
    BL_MUST(back == sent);
    BL_MUST(truth(cuda, second + 3, sent.size()) == sent);
    BL_MUST(truth(cuda, second, 3) == std::vector<unsigned char>(3, 0));
    BL_MUST(truth(cuda, second + 3 + sent.size(), 17) == std::vector<unsigned char>(17, 0));
  });
}

TEST_CASE("memory: a copy without a direction finds its direction", "[memory]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const std::vector<unsigned char> sent = pattern(5000, 9);
    std::vector<unsigned char> back(sent.size());
    std::vector<unsigned char> again(sent.size());
    const DevicePtr first = cuda.allocate(sent.size());
    const DevicePtr second = cuda.allocate(sent.size());
    CU_MUST(cuda, kSuccess, cuda.cuMemcpy(first, address_of(sent.data()), sent.size()));
    CU_MUST(cuda, kSuccess, cuda.cuMemcpyAsync(second, first, sent.size(), nullptr));
    CU_MUST(cuda, kSuccess, cuda.cuMemcpy(address_of(back.data()), second, sent.size()));
    CU_MUST(cuda, kSuccess,
            cuda.cuMemcpy(address_of(again.data()), address_of(back.data()), sent.size()));
    BL_MUST(back == sent && again == sent);
  });
}

TEST_CASE("memory: bad addresses and sizes are errors", "[memory]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(4096);
    const DevicePtr other = cuda.allocate(4096);
    std::vector<unsigned char> host(4096);
    void* const unmapped = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_MUST(cuda, kInvalidValue, cuda.cuMemcpyHtoD_v2(device, unmapped, 4096));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemcpyDtoH_v2(unmapped, device, 4096));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemcpyHtoD_v2(device, pointer(other), 16));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemcpyDtoH_v2(pointer(other), device, 16));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemcpyHtoD_v2(address_of(host.data()), host.data(), 16));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemcpyDtoD_v2(device, address_of(host.data()), 16));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemcpyHtoD_v2(device + 1, host.data(), 4096));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemcpyDtoH_v2(host.data(), device, SIZE_MAX));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemsetD8_v2(device, 0, 4097));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemsetD8_v2(0, 0, 1));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemsetD32_v2(device + 2, 0, 1));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemsetD16_v2(device + 1, 0, 1));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemsetD32_v2(device, 0, SIZE_MAX / 2));
    CU_MUST(cuda, kSuccess, cuda.cuMemcpyHtoD_v2(0, nullptr, 0));
    BL_MUST(truth(cuda, device, 4096) == std::vector<unsigned char>(4096, 0));
    BL_MUST(cuda.softgpu_read(host.data(), host.data(), 1) == EFAULT);
    BL_MUST(cuda.softgpu_write(pointer(device), unmapped, 1) == EFAULT);
  });
}

TEST_CASE("memory: fills write their range and no more", "[memory]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(64);
    CU_MUST(cuda, kSuccess, cuda.cuMemsetD8_v2(device, 0x11, 64));
    CU_MUST(cuda, kSuccess, cuda.cuMemsetD32_v2(device + 4, 0x04030201, 2));
    CU_MUST(cuda, kSuccess, cuda.cuMemsetD16_v2(device + 14, 0x0605, 1));
    const std::vector<unsigned char> wanted{0x11, 0x11, 0x11, 0x11, 1,    2,    3, 4,   1,
                                            2,    3,    4,    0x11, 0x11, 0x05, 6, 0x11};
    BL_MUST(truth(cuda, device, wanted.size()) == wanted);
  });
}

TEST_CASE("memory: softgpu_read and softgpu_write ignore settings", "[memory]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(100);
    cuda.set("missing=cuMemcpyDtoH,missing=cuMemcpyHtoD");
    const std::vector<unsigned char> sent = pattern(100, 1);
    std::vector<unsigned char> back(100);
    CU_MUST(cuda, kNotSupported, cuda.cuMemcpyHtoD_v2(device, sent.data(), 100));
    BL_MUST_OK(cuda.softgpu_write(pointer(device), sent.data(), 100));
    CU_MUST(cuda, kNotSupported, cuda.cuMemcpyDtoH_v2(back.data(), device, 100));
    BL_MUST(truth(cuda, device, 100) == sent);
    cuda.set("");
    CU_MUST(cuda, kSuccess, cuda.cuMemcpyDtoH_v2(back.data(), device, 100));
    BL_MUST(back == sent);
  });
}

TEST_CASE("memory: freed memory cannot be used", "[memory]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(4096);
    CU_MUST(cuda, kInvalidValue, cuda.cuMemFree_v2(device + 1));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemFree_v2(0));
    CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(device));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemFree_v2(device));
    char byte = 0;
    CU_MUST(cuda, kInvalidValue, cuda.cuMemcpyDtoH_v2(&byte, device, 1));
    BL_MUST(cuda.softgpu_read(pointer(device), &byte, 1) == EFAULT);
  });
}

TEST_CASE("memory: the settings limit the amount", "[memory]") {
  in_process(
      [](Cuda& cuda) {
        cuda.start();
        constexpr std::size_t kAll = std::size_t{64} << 20;
        std::size_t available = 0;
        std::size_t total = 0;
        DevicePtr more = 0;
        CU_MUST(cuda, kSuccess, cuda.cuMemGetInfo_v2(&available, &total));
        BL_MUST(available == kAll && total == kAll);
        const DevicePtr most = cuda.allocate(kAll - 4096);
        CU_MUST(cuda, kOutOfMemory, cuda.cuMemAlloc_v2(&more, 65537));
        CU_MUST(cuda, kOutOfMemory, cuda.cuMemAlloc_v2(&more, SIZE_MAX));
        CU_MUST(cuda, kInvalidValue, cuda.cuMemAlloc_v2(&more, 0));
        CU_MUST(cuda, kInvalidValue, cuda.cuMemAlloc_v2(nullptr, 10));
        CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(most));
        CU_MUST(cuda, kSuccess, cuda.cuMemGetInfo_v2(&available, nullptr));
        BL_MUST(available == kAll);
        cuda.allocate(kAll);
      },
      {{"SOFTGPU", "memory=64M"}});
}

TEST_CASE("memory: the allocation of an address can be queried", "[memory]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr device = cuda.allocate(5000);
    DevicePtr start = 0;
    std::size_t size = 0;
    CU_MUST(cuda, kSuccess, cuda.cuMemGetAddressRange_v2(&start, &size, device + 4999));
    BL_MUST(start == device && size == 5000);
    CU_MUST(cuda, kSuccess, cuda.cuMemGetAddressRange_v2(nullptr, nullptr, device));
    CU_MUST(cuda, kNotFound, cuda.cuMemGetAddressRange_v2(&start, &size, device + 5000));
    CU_MUST(cuda, kNotFound, cuda.cuMemGetAddressRange_v2(&start, &size, device - 1));
  });
}

TEST_CASE("memory: the CPU can use host memory of the driver", "[memory]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    void* host = nullptr;
    DevicePtr seen = 0;
    unsigned flags = 99;
    CU_MUST(cuda, kSuccess, cuda.cuMemHostAlloc(&host, 10000, 3));
    std::memset(host, 0x42, 10000);
    CU_MUST(cuda, kSuccess, cuda.cuMemHostGetDevicePointer_v2(&seen, host, 0));
    BL_MUST(seen == address_of(host));
    CU_MUST(cuda, kSuccess, cuda.cuMemHostGetFlags(&flags, host));
    BL_MUST(flags == 3);
    const DevicePtr device = cuda.allocate(10000);
    CU_MUST(cuda, kSuccess, cuda.cuMemcpyHtoD_v2(device, host, 10000));
    BL_MUST(truth(cuda, device, 10000) == std::vector<unsigned char>(10000, 0x42));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemFree_v2(seen));
    CU_MUST(cuda, kSuccess, cuda.cuMemFreeHost(host));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemFreeHost(host));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemFreeHost(pointer(device)));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemHostAlloc(&host, 10000, 8));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemHostAlloc(&host, 0, 0));
    CU_MUST(cuda, kOutOfMemory, cuda.cuMemAllocHost_v2(&host, SIZE_MAX - 5));
  });
}

TEST_CASE("memory: host memory is registered once and only if it is mapped", "[memory]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    std::vector<char> host(20000);
    DevicePtr seen = 0;
    CU_MUST(cuda, kInvalidValue, cuda.cuMemHostGetDevicePointer_v2(&seen, host.data(), 0));
    CU_MUST(cuda, kSuccess, cuda.cuMemHostRegister_v2(host.data(), 10000, 2));
    CU_MUST(cuda, kSuccess, cuda.cuMemHostGetDevicePointer_v2(&seen, host.data() + 9999, 0));
    BL_MUST(seen == address_of(host.data()) + 9999);
    CU_MUST(cuda, kHostMemoryAlreadyRegistered,
            cuda.cuMemHostRegister_v2(host.data() + 5000, 10000, 0));
    CU_MUST(cuda, kSuccess, cuda.cuMemHostRegister_v2(host.data() + 10000, 100, 0));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemFreeHost(host.data()));
    CU_MUST(cuda, kHostMemoryNotRegistered, cuda.cuMemHostUnregister(host.data() + 1));
    CU_MUST(cuda, kSuccess, cuda.cuMemHostUnregister(host.data()));
    CU_MUST(cuda, kHostMemoryNotRegistered, cuda.cuMemHostUnregister(host.data()));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemHostRegister_v2(nullptr, 100, 0));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemHostRegister_v2(host.data(), 100, 0x100));
    CU_MUST(cuda, kInvalidValue, cuda.cuMemHostRegister_v2(reinterpret_cast<void*>(4096), 10, 0));
    const DevicePtr device = cuda.allocate(4096);
    CU_MUST(cuda, kHostMemoryAlreadyRegistered,
            cuda.cuMemHostRegister_v2(pointer(device), 4096, 0));
  });
}

TEST_CASE("memory: many threads at once", "[memory]") {
  in_process([](Cuda& cuda) {
    Context* const context = cuda.start();
    std::vector<std::string> complaints(4);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < complaints.size(); ++t) {
      threads.emplace_back([&, t] {
        try {
          CU_MUST(cuda, kSuccess, cuda.cuCtxSetCurrent(context));
          for (unsigned char round = 0; round < 50; ++round) {
            const std::vector<unsigned char> sent =
                pattern(8192, static_cast<unsigned char>(t * 50 + round));
            const DevicePtr device = cuda.allocate(8192);
            CU_MUST(cuda, kSuccess, cuda.cuMemcpyHtoD_v2(device, sent.data(), 8192));
            BL_MUST(truth(cuda, device, 8192) == sent);
            CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(device));
          }
        } catch (const std::exception& error) {
          complaints[t] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& complaint : complaints)
      if (!complaint.empty()) throw MustError(complaint);
    BL_MUST(cuda.softgpu_calls("cuMemAlloc") == 200);
  });
}

}  // namespace
