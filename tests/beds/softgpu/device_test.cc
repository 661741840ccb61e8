// SPDX-License-Identifier: Apache-2.0
// Initialization of the driver, and its GPUs.
#include <dlfcn.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "softnic/gpu/calls.h"
#include "softnic/spec/sysfs_tree.h"
#include "tests/beds/softgpu/process.h"
#include "tests/support/catch.h"

namespace {

using namespace beeline::test;
using softnic::gpu::DeviceAttribute;
using softnic::gpu::Ordinal;
using softnic::gpu::Uuid;

int attribute(Cuda& cuda, DeviceAttribute which, Ordinal gpu = 0) {
  int value = -12345;
  CU_MUST(cuda, kSuccess, cuda.cuDeviceGetAttribute(&value, which, gpu));
  return value;
}

std::string pci_id(Cuda& cuda, Ordinal gpu) {
  char text[32] = {};
  CU_MUST(cuda, kSuccess, cuda.cuDeviceGetPCIBusId(text, sizeof text, gpu));
  return text;
}

// A host with two GPUs, in the reverse order of their addresses.
class Tree {
 public:
  Tree() {
    char path[] = "/tmp/softgpu-sysfs-XXXXXX";
    root_ = mkdtemp(path);
    softnic::HostSpec host = softnic::default_fabric().hosts.at(0);
    host.numa_nodes = 2;
    host.gpus.push_back({"b", "pci0000:c0/0000:c0:01.1/0000:c1:00.0", 1, 256 << 20});
    host.gpus.push_back({"a", "pci0000:80/0000:80:01.1/0000:81:00.0", 0, 512 << 20});
    BL_MUST(softnic::write_sysfs_tree(host, root_).has_value());
  }
  ~Tree() { std::filesystem::remove_all(root_); }
  Environment environment(const std::string& settings = {}) const {
    return {{"BEELINE_SYSFS_ROOT", root_}, {"SOFTGPU", settings}};
  }
  std::string path(const std::string& relative) const { return root_ + "/" + relative; }

 private:
  std::string root_;
};

TEST_CASE("device: every call is exported, under each of its names", "[device]") {
  in_process([](Cuda& cuda) {
#define SOFTGPU_THERE(name, ...) BL_MUST(cuda.name != nullptr);
    SOFTGPU_TYPES(SOFTGPU_THERE)
#undef SOFTGPU_THERE
    for (const softnic::gpu::CallRow& row : softnic::gpu::kCalls)
      if (dlsym(cuda.library(), row.symbol) == nullptr) throw MustError(row.symbol);
  });
}

TEST_CASE("device: before cuInit only calls without a GPU work", "[device]") {
  in_process([](Cuda& cuda) {
    int number = 0;
    DevicePtr address = 0;
    Context* context = nullptr;
    CU_MUST(cuda, kNotInitialized, cuda.cuDeviceGetCount(&number));
    CU_MUST(cuda, kNotInitialized, cuda.cuMemAlloc_v2(&address, 4096));
    CU_MUST(cuda, kNotInitialized, cuda.cuCtxGetCurrent(&context));
    CU_MUST(cuda, kSuccess, cuda.cuDriverGetVersion(&number));
    BL_MUST(number == 13000);
    CU_MUST(cuda, kInvalidValue, cuda.cuInit(1));
    CU_MUST(cuda, kNotInitialized, cuda.cuDeviceGetCount(&number));
  });
}

TEST_CASE("device: without a host's tree there is one GPU", "[device]") {
  in_process([](Cuda& cuda) {
    int count = 0;
    Ordinal gpu = -1;
    CU_MUST(cuda, kSuccess, cuda.cuInit(0));
    CU_MUST(cuda, kSuccess, cuda.cuInit(0));
    CU_MUST(cuda, kSuccess, cuda.cuDeviceGetCount(&count));
    BL_MUST(count == 1);
    CU_MUST(cuda, kSuccess, cuda.cuDeviceGet(&gpu, 0));
    BL_MUST(gpu == 0);
    BL_MUST(pci_id(cuda, 0) == "0000:01:00.0");
    CU_MUST(cuda, kInvalidDevice, cuda.cuDeviceGet(&gpu, 1));
    CU_MUST(cuda, kInvalidDevice, cuda.cuDeviceGet(&gpu, -1));
    CU_MUST(cuda, kInvalidValue, cuda.cuDeviceGet(nullptr, 0));
    CU_MUST(cuda, kInvalidValue, cuda.cuDeviceGetCount(nullptr));
  });
}

TEST_CASE("device: the GPUs are those of the host's tree, by address", "[device]") {
  const Tree tree;
  in_process(
      [](Cuda& cuda) {
        int count = 0;
        Ordinal gpu = -1;
        CU_MUST(cuda, kSuccess, cuda.cuInit(0));
        CU_MUST(cuda, kSuccess, cuda.cuDeviceGetCount(&count));
        BL_MUST(count == 2);
        BL_MUST(pci_id(cuda, 0) == "0000:81:00.0");
        BL_MUST(pci_id(cuda, 1) == "0000:c1:00.0");
        BL_MUST(attribute(cuda, DeviceAttribute::kPciBusId, 1) == 0xc1);
        BL_MUST(attribute(cuda, DeviceAttribute::kPciDeviceId, 1) == 0);
        BL_MUST(attribute(cuda, DeviceAttribute::kPciDomainId, 1) == 0);
        BL_MUST(attribute(cuda, DeviceAttribute::kHostNumaId, 0) == 0);
        BL_MUST(attribute(cuda, DeviceAttribute::kHostNumaId, 1) == 1);
        BL_MUST(attribute(cuda, DeviceAttribute::kGpuPciDeviceId) == 0x233010de);
        CU_MUST(cuda, kSuccess, cuda.cuDeviceGetByPCIBusId(&gpu, "0000:c1:00.0"));
        BL_MUST(gpu == 1);
        CU_MUST(cuda, kSuccess, cuda.cuDeviceGetByPCIBusId(&gpu, "81:00.0"));
        BL_MUST(gpu == 0);
        CU_MUST(cuda, kInvalidDevice, cuda.cuDeviceGetByPCIBusId(&gpu, "0000:01:00.0"));
        CU_MUST(cuda, kInvalidValue, cuda.cuDeviceGetByPCIBusId(&gpu, "GPU one"));
      },
      tree.environment());
}

TEST_CASE("device: BAR1 is as large as the host's tree says", "[device]") {
  const Tree tree;
  const auto pins = [](std::size_t most) {
    return [=](Cuda& cuda) {
      cuda.start(1);
      const DevicePtr address = cuda.allocate(most + 1);
      int pages = -1;
      std::uint64_t offset = 0;
      const auto pin = [&](std::size_t size) {
        return cuda.softgpu_peermem(reinterpret_cast<void*>(address), size, &pages, &offset);
      };
      BL_MUST(pin(most + 1) == ENOMEM);
      BL_MUST(pin(most) == 0);
    };
  };
  in_process(pins(256 << 20), tree.environment());
  in_process(pins(4 << 20), tree.environment("bar1=4M"));
}

TEST_CASE("device: a host without GPUs has no driver to initialize", "[device]") {
  const Tree tree;
  const auto no_gpu = [](Cuda& cuda) { CU_MUST(cuda, kNoDevice, cuda.cuInit(0)); };
  in_process(no_gpu, tree.environment("gpus=0"));
  in_process(no_gpu, {{"BEELINE_SYSFS_ROOT", "/nonexistent"}});
}

TEST_CASE("device: settings can remove and add GPUs", "[device]") {
  const Tree tree;
  const auto has = [](int wanted, const std::string& last) {
    return [=](Cuda& cuda) {
      int count = 0;
      CU_MUST(cuda, kSuccess, cuda.cuInit(0));
      CU_MUST(cuda, kSuccess, cuda.cuDeviceGetCount(&count));
      BL_MUST(count == wanted);
      BL_MUST(pci_id(cuda, count - 1) == last);
    };
  };
  in_process(has(1, "0000:81:00.0"), tree.environment("gpus=1"));
  in_process(has(3, "0000:01:00.0"), tree.environment("gpus=3"));
  in_process(has(2, "0000:02:00.0"), {{"SOFTGPU", "gpus=2"}});
}

TEST_CASE("device: CUDA_VISIBLE_DEVICES selects and orders GPUs", "[device]") {
  const Tree tree;
  const auto sees = [&](const char* visible, const CudaBody& body) {
    Environment environment = tree.environment();
    environment["CUDA_VISIBLE_DEVICES"] = visible;
    in_process(body, environment);
  };
  sees("1,0", [](Cuda& cuda) {
    CU_MUST(cuda, kSuccess, cuda.cuInit(0));
    BL_MUST(pci_id(cuda, 0) == "0000:c1:00.0");
    BL_MUST(pci_id(cuda, 1) == "0000:81:00.0");
  });
  sees("1,7,0", [](Cuda& cuda) {
    int count = 0;
    CU_MUST(cuda, kSuccess, cuda.cuInit(0));
    CU_MUST(cuda, kSuccess, cuda.cuDeviceGetCount(&count));
    BL_MUST(count == 1);
  });
  for (const char* nothing : {"", "-1", "0,0"})
    sees(nothing, [](Cuda& cuda) { CU_MUST(cuda, kNoDevice, cuda.cuInit(0)); });
}

TEST_CASE("device: each GPU has a unique and stable UUID", "[device]") {
  in_process(
      [](Cuda& cuda) {
        CU_MUST(cuda, kSuccess, cuda.cuInit(0));
        std::set<std::string> uuids;
        for (const Ordinal gpu : {0, 1, 0, 1}) {
          Uuid uuid{};
          CU_MUST(cuda, kSuccess, cuda.cuDeviceGetUuid_v2(&uuid, gpu));
          uuids.emplace(reinterpret_cast<const char*>(uuid.bytes), sizeof uuid.bytes);
        }
        BL_MUST(uuids.size() == 2);
      },
      {{"SOFTGPU", "gpus=2"}});
}

TEST_CASE("device: attributes follow the settings", "[device]") {
  in_process([](Cuda& cuda) {
    CU_MUST(cuda, kSuccess, cuda.cuInit(0));
    const auto is = [&](DeviceAttribute which, int wanted) {
      BL_MUST(attribute(cuda, which) == wanted);
    };
    is(DeviceAttribute::kComputeCapabilityMajor, 9);
    is(DeviceAttribute::kComputeCapabilityMinor, 0);
    is(DeviceAttribute::kDmaBufSupported, 1);
    is(DeviceAttribute::kGpuDirectRdmaSupported, 1);
    is(DeviceAttribute::kGpuDirectRdmaWithVmmSupported, 1);
    is(DeviceAttribute::kGpuDirectRdmaFlushWritesOptions, 3);
    is(DeviceAttribute::kGpuDirectRdmaWritesOrdering, 200);
    is(DeviceAttribute::kCanFlushRemoteWrites, 1);
    is(DeviceAttribute::kIntegrated, 0);
    is(DeviceAttribute::kHostNumaId, -1);
    is(DeviceAttribute::kUnifiedAddressing, 1);
    cuda.set("compute=7.5,dmabuf=no,flush=host,ordering=owner,memory=3G");
    is(DeviceAttribute::kComputeCapabilityMajor, 7);
    is(DeviceAttribute::kComputeCapabilityMinor, 5);
    is(DeviceAttribute::kDmaBufSupported, 0);
    is(DeviceAttribute::kGpuDirectRdmaSupported, 1);
    is(DeviceAttribute::kGpuDirectRdmaFlushWritesOptions, 1);
    is(DeviceAttribute::kGpuDirectRdmaWritesOrdering, 100);
    is(DeviceAttribute::kCanFlushRemoteWrites, 0);
    std::size_t bytes = 0;
    CU_MUST(cuda, kSuccess, cuda.cuDeviceTotalMem_v2(&bytes, 0));
    BL_MUST(bytes == std::size_t{3} << 30);
    cuda.set("gdr=no,ordering=none,flush=none");
    is(DeviceAttribute::kDmaBufSupported, 0);
    is(DeviceAttribute::kGpuDirectRdmaSupported, 0);
    is(DeviceAttribute::kGpuDirectRdmaWithVmmSupported, 0);
    is(DeviceAttribute::kGpuDirectRdmaFlushWritesOptions, 0);
    is(DeviceAttribute::kGpuDirectRdmaWritesOrdering, 0);
  });
}

TEST_CASE("device: unknown and newer attributes are invalid", "[device]") {
  in_process([](Cuda& cuda) {
    CU_MUST(cuda, kSuccess, cuda.cuInit(0));
    int value = 7;
    for (const int number : {0, -1, 5555})
      CU_MUST(cuda, kInvalidValue,
              cuda.cuDeviceGetAttribute(&value, static_cast<DeviceAttribute>(number), 0));
    CU_MUST(cuda, kInvalidValue, cuda.cuDeviceGetAttribute(nullptr, DeviceAttribute::kPciBusId, 0));
    CU_MUST(cuda, kInvalidDevice, cuda.cuDeviceGetAttribute(&value, DeviceAttribute::kPciBusId, 1));
    cuda.set("driver=11060");
    CU_MUST(cuda, kInvalidValue,
            cuda.cuDeviceGetAttribute(&value, DeviceAttribute::kDmaBufSupported, 0));
    BL_MUST(attribute(cuda, DeviceAttribute::kGpuDirectRdmaSupported) == 1);
    cuda.set("driver=11020");
    CU_MUST(cuda, kInvalidValue,
            cuda.cuDeviceGetAttribute(&value, DeviceAttribute::kGpuDirectRdmaSupported, 0));
    BL_MUST(value == 7);
  });
}

TEST_CASE("device: texts are truncated to the buffer and terminated", "[device]") {
  in_process([](Cuda& cuda) {
    CU_MUST(cuda, kSuccess, cuda.cuInit(0));
    char text[32];
    std::memset(text, 'x', sizeof text);
    CU_MUST(cuda, kSuccess, cuda.cuDeviceGetName(text, 5, 0));
    BL_MUST(std::string(text) == "soft" && text[5] == 'x');
    CU_MUST(cuda, kInvalidValue, cuda.cuDeviceGetName(text, 0, 0));
    CU_MUST(cuda, kInvalidValue, cuda.cuDeviceGetPCIBusId(nullptr, 20, 0));
  });
}

TEST_CASE("device: every error has a name and a text", "[device]") {
  in_process([](Cuda& cuda) {
    const char* name = nullptr;
    const char* text = nullptr;
    int known = 0;
    for (int number = 0; number < 1000; ++number) {
      const auto error = static_cast<CuResult>(number);
      if (cuda.cuGetErrorName(error, &name) != CuResult::kSuccess) {
        BL_MUST(name == nullptr);
        CU_MUST(cuda, kInvalidValue, cuda.cuGetErrorString(error, &text));
        BL_MUST(text == nullptr);
        continue;
      }
      ++known;
      BL_MUST(std::string(name).starts_with("CUDA_"));
      CU_MUST(cuda, kSuccess, cuda.cuGetErrorString(error, &text));
      BL_MUST(text[0] != 0);
    }
    BL_MUST(known == 101);
    BL_MUST(cuda.error_name(CuResult::kNotSupported) == "CUDA_ERROR_NOT_SUPPORTED");
    BL_MUST(cuda.error_name(CuResult::kSuccess) == "CUDA_SUCCESS");
    BL_MUST(cuda.error_name(static_cast<CuResult>(999)) == "CUDA_ERROR_UNKNOWN");
    CU_MUST(cuda, kInvalidValue, cuda.cuGetErrorName(CuResult::kSuccess, nullptr));
  });
}

TEST_CASE("device: a forked child has no driver", "[device]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const DevicePtr address = cuda.allocate(4096);
    const CudaEnding child = end_of_process([&](Cuda& inherited) {
      int count = 0;
      char byte = 0;
      CU_MUST(inherited, kNotInitialized, inherited.cuInit(0));
      CU_MUST(inherited, kNotInitialized, inherited.cuDeviceGetCount(&count));
      CU_MUST(inherited, kNotInitialized, inherited.cuMemFree_v2(address));
      BL_MUST(inherited.softgpu_read(reinterpret_cast<void*>(address), &byte, 1) != 0);
    });
    BL_MUST(child.signal == 0);
    if (!child.complaint.empty()) throw MustError(child.complaint);
    CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(address));
  });
}

TEST_CASE("device: a child forked before cuInit has a driver of its own", "[device]") {
  in_process([](Cuda& cuda) {
    int version = 0;
    CU_MUST(cuda, kSuccess, cuda.cuDriverGetVersion(&version));
    const CudaEnding child = end_of_process([](Cuda& own) { own.start(); });
    BL_MUST(child.signal == 0 && child.complaint.empty());
  });
}

}  // namespace
