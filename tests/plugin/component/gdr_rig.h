// SPDX-License-Identifier: Apache-2.0
//
// For the tests of GPU memory: softgpu's CUDA driver, and NICs with fake verbs that can fail. Each
// test case runs in a process of its own, since the driver is loaded once per process.
#pragma once

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "plugin/transfer/registration.h"
#include "tests/beds/softgpu/process.h"
#include "tests/support/found.h"
#include "tests/support/verbs_fake.h"

namespace beeline::test {

inline constexpr std::size_t kRails = 4;
inline constexpr std::size_t kBytes = 3 << 20;

// Four NICs whose registrations are recorded, and GPU memory.
struct GdrRig {
  explicit GdrRig(Cuda& softgpu, const gdr::Options& wishes = {}) : cuda(softgpu) {
    cuda.start();
    memory = cuda.allocate(kBytes);
    gdr::Options options = wishes;
    options.cuda_lib = SOFTGPU_LIBRARY;
    gpus = std::make_unique<gdr::GpuDirect>(options, kRails);
    BL_MUST(gpus->has_driver());
    for (std::size_t i = 0; i < kRails; ++i) {
      devices[i].ibdev = "nic" + std::to_string(i);
      devices[i].index = static_cast<int>(i);
      caches[i] = std::make_unique<MrCache>(fake.api, &domains[i]);
      rails[i] = {.device = &devices[i], .cache = caches[i].get()};
    }
  }

  Buffer gpu_buffer(std::size_t offset = 0, std::size_t size = kBytes) const {
    return {
        .data = reinterpret_cast<void*>(memory + offset), .size = size, .kind = MemoryKind::kCuda};
  }
  // Tests the GPUs with every NIC as init does. Without `proof`, it only registers memory.
  Found probe() {
    return Found(gpus->probe(
        devices,
        [this](const Device& device) {
          return Result<MrCache*>(caches[static_cast<std::size_t>(device.index)].get());
        },
        nullptr));
  }
  Result<std::unique_ptr<MemoryHandle>> enter(const Buffer& buffer) {
    return register_buffer(rails, buffer, gpus.get(), left_out);
  }

  // These NICs refuse every registration with this error.
  void refuse(std::uint8_t mask, int error) {
    fake.on_register = [this, mask, error](const FakeVerbs::Registration& asked) {
      return (mask >> (asked.pd - domains.data()) & 1) != 0 ? error : 0;
    };
  }

  std::uint64_t open_handles() const {
    const auto ask =
        reinterpret_cast<std::uint64_t (*)()>(dlsym(cuda.library(), "softgpu_open_handles"));
    return ask();
  }
  int dmabufs_tried() const {
    int tried = 0;
    for (const auto& one : fake.registrations()) tried += one.fd >= 0 ? 1 : 0;
    return tried;
  }

  Cuda& cuda;
  softnic::gpu::DevicePtr memory = 0;
  FakeVerbs fake;
  std::unique_ptr<gdr::GpuDirect> gpus;
  std::array<Device, kRails> devices;
  std::array<ibv_pd, kRails> domains{};
  std::array<std::unique_ptr<MrCache>, kRails> caches;
  std::array<Rail, kRails> rails;
  LeftOutRails left_out;
};

}  // namespace beeline::test
