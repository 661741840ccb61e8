// SPDX-License-Identifier: Apache-2.0
//
// The findings about a GPU and the NICs of its host, and their texts.
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "plugin/gdr/report.h"
#include "tests/support/catch.h"
#include "tests/support/stats_dir.h"

using namespace beeline;
using namespace beeline::gdr;

namespace {

// A GPU and NICs. Those of near() work by dma-buf; each case changes what it is about.
struct Scene {
  explicit Scene(int nics = 1) : devices(static_cast<std::size_t>(nics)) {
    for (Device& device : devices) {
      device.ibdev = "mlx5_" + std::to_string(&device - devices.data());
      tried.push_back({&device, {}, topology::Distance::kPix});
      Proof& proof = tried.back().proof;
      proof.ways.dmabuf.works = true;
      proof.transferred = true;
    }
    gpu.ordinal = 2;
    gpu.pci = "0000:1b:00.0";
    gpu.gdr = gpu.dmabuf = true;
    cuda.version = 13000;
  }

  Proof& proof() { return tried.front().proof; }
  void refuse(const char* why) { proof().failure = why; }
  void take_ways(int dmabuf_errno, int peermem_errno) {
    for (Tried& one : tried) {
      one.proof.ways.dmabuf = {.works = false, .why_not = "a", .sys_errno = dmabuf_errno};
      one.proof.ways.peermem = {.works = false, .why_not = "b", .sys_errno = peermem_errno};
      one.proof.failure = "dma-buf: a; peer memory: b";
    }
  }
  void only_peer_memory(const char* why_no_dmabuf) {
    proof().ways.dmabuf = {.works = false, .why_not = why_no_dmabuf, .sys_errno = ENOMEM};
    proof().ways.peermem.works = true;
  }
  std::vector<Finding> findings() const {
    return findings_of({.gpu = gpu, .cuda = cuda, .level = level, .tried = tried}, sysfs);
  }
  std::string text() const {
    const std::vector<Finding> all = findings();
    return all.size() == 1 ? describe(all.front()) : std::to_string(all.size()) + " findings";
  }
  bool says(const char* part) const { return text().find(part) != std::string::npos; }

  std::vector<Device> devices;
  gpu::Gpu gpu;
  gpu::Cuda cuda;
  std::vector<Tried> tried;
  topology::Distance level = topology::Distance::kPxb;
  std::string sysfs = "/nowhere";
};

}  // namespace

TEST_CASE("gdr words: one line for a GPU, whatever the number of NICs", "[unit][gdr]") {
  Scene scene(8);
  for (std::size_t i = 2; i < 8; ++i) scene.tried[i].distance = topology::Distance::kSys;
  CHECK(scene.text() ==
        "GPUDirect GPU 2 (0000:1b:00.0): on with mlx5_0, mlx5_1 (PIX, dma-buf); 6 farther NICs not "
        "used (normal); writes ordered for none");
  const Finding finding = scene.findings().front();
  CHECK(finding.id == "gpudirect-on");
  CHECK(finding.severity == Severity::kNote);
  CHECK(finding.subject == "GPU 2 (0000:1b:00.0)");
  CHECK(finding.others == std::vector<std::string>{"mlx5_0", "mlx5_1"});
  scene.tried[2].distance = topology::Distance::kPxb;
  for (std::size_t i = 3; i < 7; ++i) scene.tried[i].distance = topology::Distance::kPix;
  CHECK(
      scene.says("on with mlx5_0, mlx5_1, mlx5_3, mlx5_4, mlx5_5, mlx5_6 (PIX, dma-buf), mlx5_2 "
                 "(PXB, dma-buf); 1 farther NIC not used (normal)"));
}

TEST_CASE("gdr words: how a NIC reaches the GPU, and for whom writes are ordered", "[unit][gdr]") {
  Scene scene;
  scene.devices.front().caps.relaxed_ordering = true;
  scene.tried.front().distance.reset();
  CHECK(
      scene.text() ==
      "GPUDirect GPU 2 (0000:1b:00.0): on with mlx5_0 (dma-buf, relaxed ordering); writes ordered "
      "for none");
  scene.gpu.writes_ordering = 100;
  CHECK(scene.says("writes ordered for the owner"));
  scene.gpu.writes_ordering = 200;
  CHECK(scene.says("writes ordered for all devices"));
  scene.proof().transferred = false;
  CHECK(scene.says("on with mlx5_0 (dma-buf, not tested, relaxed ordering)"));
  scene.proof().why_unproven = "an iWARP port has no loopback connection";
  CHECK(scene.says(
      "(dma-buf, not tested: an iWARP port has no loopback connection, relaxed ordering)"));
}

TEST_CASE("gdr words: peer memory in the place of a dma-buf says why", "[unit][gdr]") {
  Scene scene(2);
  scene.only_peer_memory("ibv_reg_dmabuf_mr: Cannot allocate memory");
  CHECK(scene.says("on with mlx5_0 (PIX, peer memory), mlx5_1 (PIX, dma-buf)"));
  CHECK(scene.text().ends_with(
      "; dma-buf fails with mlx5_0: ibv_reg_dmabuf_mr: Cannot allocate memory"));
}

TEST_CASE("gdr words: all NICs are beyond NCCL's distance limit", "[unit][gdr]") {
  Scene scene(3);
  scene.tried[0].distance = topology::Distance::kSys;
  scene.tried[1].distance = scene.tried[2].distance = topology::Distance::kNode;
  CHECK(scene.findings().front().id == "gpudirect-too-far");
  CHECK(scene.findings().front().severity == Severity::kNote);
  CHECK(scene.findings().front().others == std::vector<std::string>{"mlx5_1", "mlx5_2"});
  CHECK(
      scene.says("GPU 2 (0000:1b:00.0): off: the nearest NICs that reach it (mlx5_1, mlx5_2) are "
                 "NODE apart"));
  CHECK(scene.says("NCCL goes up to PXB"));
  CHECK(scene.says("NCCL_NET_GDR_LEVEL=PHB turns GPUDirect on, by dma-buf"));
}

TEST_CASE("gdr words: NICs that do not work have one warning for each reason", "[unit][gdr]") {
  Scene scene(4);
  scene.tried[1].proof.failure = scene.tried[3].proof.failure = "an iWARP port cannot flush";
  const std::vector<Finding> findings = scene.findings();
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].severity == Severity::kNote);
  CHECK(findings[0].fact.find("on with mlx5_0, mlx5_2 (PIX, dma-buf); writes") !=
        std::string::npos);
  CHECK(findings[1].id == "gpudirect-off");
  CHECK(findings[1].severity == Severity::kWarning);
  CHECK(findings[1].others == std::vector<std::string>{"mlx5_1", "mlx5_3"});
  CHECK(describe(findings[1]) ==
        "GPUDirect GPU 2 (0000:1b:00.0): off with mlx5_1, mlx5_3: an iWARP port cannot flush");
}

TEST_CASE("gdr words: what the user has turned off is not said to be on", "[unit][gdr]") {
  Scene scene;
  scene.level = topology::Distance::kLoc;
  scene.tried.front().distance.reset();
  CHECK(scene.text() == "GPUDirect GPU 2 (0000:1b:00.0): off, as NCCL_NET_GDR_LEVEL=LOC asks");
  const std::vector<Answered> answers = {{scene.devices.data(), scene.proof().ways}};
  CHECK(describe(finding_without_gpu(answers, topology::Distance::kLoc)) ==
        "GPUDirect: off, as NCCL_NET_GDR_LEVEL=LOC asks");
}

TEST_CASE("gdr words: while no GPU is in use, one line says what the drivers offer",
          "[unit][gdr]") {
  Scene scene(3);
  scene.take_ways(0, 0);
  std::vector<Answered> answers;
  for (const Tried& one : scene.tried) answers.push_back({one.device, one.proof.ways});
  answers[0].ways.dmabuf.works = answers[1].ways.dmabuf.works = true;
  CHECK(describe(finding_without_gpu(answers, topology::Distance::kPxb)) ==
        "GPUDirect: this process uses no GPU yet, so nothing was tested; the drivers offer it with "
        "mlx5_0, mlx5_1 (dma-buf); it will be off with mlx5_2 (dma-buf: a; peer memory: b)");
}

TEST_CASE("gdr words: what is missing, and what to do", "[unit][gdr]") {
  Scene scene;
  SECTION("no module, and a driver that makes no dma-bufs") {
    scene.take_ways(0, EFAULT);
    scene.gpu.dmabuf = false;
    CHECK(scene.says("off with mlx5_0: dma-buf: a; peer memory: b. To fix it: "));
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
    scene.proof().is_blocked = true;
    CHECK(scene.says("ACS"));
    CHECK(scene.says("iommu=pt"));
  }
  SECTION("a reason that needs no advice") {
    scene.refuse("an iWARP port cannot flush");
    CHECK(scene.text().ends_with("off with mlx5_0: an iWARP port cannot flush"));
    scene.proof().ways = {};
    scene.refuse("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY");
    CHECK(scene.text().ends_with("off with mlx5_0: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"));
  }
  SECTION("a GPU that cannot") {
    scene.gpu.gdr = false;
    scene.refuse("the GPU cannot");
    CHECK(scene.text() == "GPUDirect GPU 2 (0000:1b:00.0): off with mlx5_0: the GPU cannot");
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
