// SPDX-License-Identifier: Apache-2.0
//
// What people are told of a GPU and a NIC.
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "plugin/gdr/remedy.h"
#include "plugin/gdr/report.h"
#include "tests/support/catch.h"
#include "tests/unit/stats_dir.h"

using namespace beeline;
using namespace beeline::gdr;

namespace {

// A pair that works by dma-buf; each case changes what it is about.
struct Scene {
  Scene() {
    device.ibdev = "mlx5_3";
    device.caps.relaxed_ordering = true;
    gpu.ordinal = 2;
    gpu.pci = "0000:1b:00.0";
    gpu.gdr = gpu.dmabuf = true;
    cuda.version = 13000;
    proof.ways.dmabuf.works = true;
    proof.transferred = true;
    proof.bytes_per_s = 48.94e9;
  }

  void refuse(const char* why) { proof.failure = why; }
  void take_ways(int dmabuf_errno, int peermem_errno) {
    proof.ways.dmabuf = {.works = false, .why_not = "a", .sys_errno = dmabuf_errno};
    proof.ways.peermem = {.works = false, .why_not = "b", .sys_errno = peermem_errno};
    refuse("dma-buf: a; peer memory: b");
  }
  std::string text() const {
    return pair_text({.device = device,
                      .gpu = gpu,
                      .cuda = cuda,
                      .proof = proof,
                      .distance = distance,
                      .level = topology::Distance::kPxb},
                     sysfs);
  }
  bool says(const char* part) const { return text().find(part) != std::string::npos; }

  Device device;
  gpu::Gpu gpu;
  gpu::Cuda cuda;
  Proof proof;
  std::optional<topology::Distance> distance = topology::Distance::kPix;
  std::string sysfs = "/nowhere";
};

}  // namespace

TEST_CASE("gdr words: a pair that works", "[unit][gdr]") {
  Scene scene;
  CHECK(scene.text() ==
        "GPUDirect mlx5_3 - GPU 2 (0000:1b:00.0): on by dma-buf, PIX, 48.9 GB/s, relaxed ordering, "
        "writes ordered for none");
  scene.device.caps.relaxed_ordering = false;
  scene.distance.reset();
  scene.proof.ways.dmabuf.works = false;
  scene.proof.ways.peermem.works = true;
  scene.gpu.writes_ordering = 100;
  CHECK(scene.text() ==
        "GPUDirect mlx5_3 - GPU 2 (0000:1b:00.0): on by peer memory, 48.9 GB/s, writes ordered for "
        "the "
        "owner");
  scene.gpu.writes_ordering = 200;
  CHECK(scene.says("writes ordered for all devices"));
  scene.proof.transferred = false;
  scene.proof.why_unproven = "an iWARP port has no way to itself";
  CHECK(scene.says("on by peer memory, not measured (an iWARP port has no way to itself)"));
}

TEST_CASE("gdr words: a pair that is too far apart", "[unit][gdr]") {
  Scene scene;
  scene.distance = topology::Distance::kNode;
  CHECK(scene.text() ==
        "GPUDirect mlx5_3 - GPU 2 (0000:1b:00.0): off: they are NODE apart, and NCCL goes up to "
        "PXB. To turn it on, by dma-buf: NCCL_NET_GDR_LEVEL=PHB");
}

TEST_CASE("gdr words: what is missing, and what to do", "[unit][gdr]") {
  Scene scene;
  SECTION("no module, and a driver that makes no dma-bufs") {
    scene.take_ways(0, EFAULT);
    scene.gpu.dmabuf = false;
    CHECK(scene.says("off: dma-buf: a; peer memory: b. To fix it: "));
    CHECK(scene.says("modprobe nvidia-peermem"));
    CHECK(scene.says("open kernel modules"));
  }
  SECTION("an old driver") {
    scene.take_ways(0, EFAULT);
    scene.cuda.version = 11040;
    CHECK(scene.says("update NVIDIA's driver to CUDA 11.7"));
  }
  SECTION("a NIC's driver that takes none") {
    scene.take_ways(GENERATE(EOPNOTSUPP, ENOSYS, 524), EFAULT);
    CHECK(scene.says("update the NIC's driver"));
  }
  SECTION("a window that is used up") {
    scene.take_ways(ENOMEM, ENOMEM);
    CHECK(scene.says("BAR1"));
    CHECK(scene.says("Resizable BAR"));
    CHECK(!scene.says("modprobe"));
  }
  SECTION("data that does not arrive") {
    scene.refuse("what the NIC writes to the GPU does not arrive there");
    scene.proof.is_blocked = true;
    CHECK(scene.says("ACS"));
    CHECK(scene.says("iommu=pt"));
  }
  SECTION("a reason that needs no advice") {
    scene.refuse("an iWARP port cannot flush");
    CHECK(scene.text().ends_with("off: an iWARP port cannot flush"));
    scene.proof.ways = {};
    scene.refuse("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY");
    CHECK(scene.text().ends_with("off: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"));
  }
  SECTION("a GPU that cannot") {
    scene.gpu.gdr = false;
    scene.refuse("the GPU cannot");
    CHECK(scene.text() == "GPUDirect mlx5_3 - GPU 2 (0000:1b:00.0): off: the GPU cannot");
  }
}

TEST_CASE("gdr words: a module that is loaded is not asked for again", "[unit][gdr]") {
  Scene scene;
  const test::StatsDir folder;
  scene.sysfs = folder.path();
  scene.take_ways(EINVAL, EFAULT);
  CHECK(scene.says("load NVIDIA's peer-memory module"));
  std::filesystem::create_directories(scene.sysfs + "/module/nvidia_peermem");
  CHECK(!scene.says("load NVIDIA's peer-memory module"));
  CHECK(scene.says("it was built for other RDMA drivers"));
}

TEST_CASE("gdr words: how much of a GPU's memory NICs reach", "[unit][gdr]") {
  Scene scene;
  const test::StatsDir folder;
  CHECK(gpu::reachable_bytes(folder.path(), scene.gpu) == 0);
  const std::string place = folder.path() + "/bus/pci/devices/0000:1b:00.0";
  std::filesystem::create_directories(place);
  std::ofstream(place + "/resource")
      << "0x00000000fa000000 0x00000000faffffff 0x0000000000040200\n"
         "0x0000002000000000 0x0000003fffffffff 0x000000000014220c\n";
  CHECK(gpu::reachable_bytes(folder.path(), scene.gpu) == std::size_t{128} << 30);
  std::ofstream(place + "/resource") << "nonsense\nand more\n";
  CHECK(gpu::reachable_bytes(folder.path(), scene.gpu) == 0);
}
