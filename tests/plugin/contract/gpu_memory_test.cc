// SPDX-License-Identifier: Apache-2.0
//
// regMrDmaBuf, regMr and deregMr of GPU memory: if one way of registering it is refused, the plugin
// tries the other. A registration that fails leaves nothing behind and logs why.
#include <unistd.h>

#include <optional>
#include <random>

#include "tests/plugin/contract/gpu.h"
#include "tests/plugin/contract/levels.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;
using beeline::UniqueFd;

namespace {

constexpr size_t kGpuMemoryPage = 4096;
constexpr size_t kGpuMemorySize = 4 * kGpuMemoryPage;

// A session with a connection to itself, and a source buffer on the host.
struct GpuScratch : LinkedSession {
  GpuScratch() : source(net, link.send, Kind::kHost, kGpuMemorySize) {}

  AnyBuffer destination(Kind kind, size_t size = kGpuMemorySize) {
    return {net, link.recv, kind, size};
  }
  void carry_to(AnyBuffer& to, size_t size, uint32_t seed) {
    must_carry(net, link, source, to, size, seed);
  }

  AnyBuffer source;
};

// A pipe, which NICs refuse as a dma-buf.
struct NoDmabuf {
  NoDmabuf() {
    int ends[2];
    BL_MUST(pipe(ends) == 0);
    fd = UniqueFd(ends[0]);
    other = UniqueFd(ends[1]);
  }
  UniqueFd fd;
  UniqueFd other;
};

Registered reg_with(Net& net, const Comm& comm, int fd, const GpuMemory& memory) {
  Registered registered{ncclSuccess, memory.at()};
  registered.result = net.reg_mr_dma_buf(comm.raw(), memory.at(), memory.size(), NCCL_PTR_CUDA, 0,
                                         fd, &registered.mhandle);
  BL_MUST((registered.result == ncclSuccess) == (registered.mhandle != nullptr));
  return registered;
}

std::string the_only_warning() {
  const std::vector<std::string> warnings = find_log_lines(NCCL_LOG_WARN);
  if (warnings.size() != 1) {
    throw MustError(std::to_string(warnings.size()) + " warnings, not one");
  }
  return warnings.front();
}

void must_name(const std::string& line, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (line.find(part) != std::string::npos) continue;
    throw MustError(std::string("no \"").append(part).append("\" in: ").append(line));
  }
}

// Checks a registration that failed: it returned an error and logged one warning, nothing is left
// of it, and the comm still works.
void must_have_failed(GpuScratch& scratch, const Registered& registered,
                      const std::vector<std::string>& causes, const Levels& before) {
  BL_MUST(registered.result != ncclSuccess);
  must_name(the_only_warning(), causes);
  must_hold_no_gpu_memory();
  must_return_to(before);
  BL_MUST_SUCCEED(scratch.net.dereg_mr(scratch.link.recv.raw(), registered.mhandle));
  cuda().set("");
  AnyBuffer to = scratch.destination(Kind::kDmabuf);
  scratch.carry_to(to, kGpuMemorySize, 1);
}

}  // namespace

TEST_CASE("gpu memory: deregistering releases all of it", "[contract][gpu][gpu_memory][softnic]") {
  const bool flushes = GENERATE(false, true);
  CAPTURE(flushes);
  if (flushes && !kProcessesWork) return;
  const Variable gpu("SOFTGPU", flushes ? "ordering=none,compute=8.0" : "");
  run_with_gpu([&] {
    GpuScratch scratch;
    std::optional<Levels> after_first;  // the first flush creates objects that stay
    for (uint32_t round = 0; round < 5; ++round) {
      for (const Kind kind : {Kind::kDmabuf, Kind::kPeermem}) {
        AnyBuffer to = scratch.destination(kind);
        scratch.carry_to(to, kGpuMemorySize, round);
        BL_MUST(cuda().softgpu_pinned() >= kGpuMemorySize);
        to.mr().drop();
        must_hold_no_gpu_memory();
      }
      if (!after_first) after_first = levels();
      must_return_to(*after_first);
    }
  });
}

TEST_CASE("gpu memory: where both ways are refused, from a dma-buf on, the error has both causes",
          "[contract][gpu][gpu_memory][softnic]") {
  if (!kProcessesWork) return;
  run_with_gpu([&] {
    GpuScratch scratch;
    const GpuMemory memory(kGpuMemorySize);
    const Levels before = levels();
    cuda().set("peermem=no");
    clear_log();
    std::optional<NoDmabuf> refused(std::in_place);
    const Registered registered =
        reg_with(scratch.net, scratch.link.recv, refused->fd.get(), memory);
    refused.reset();
    must_have_failed(scratch, registered,
                     {"dma-buf", "peer memory", "Invalid argument", "Bad address"}, before);
  });
}

TEST_CASE("gpu memory: where BAR1 is full there is an error, and room when something is dropped",
          "[contract][gpu][gpu_memory][softnic]") {
  if (!kProcessesWork) return;
  constexpr size_t kBar = size_t{2} << 20;
  const Variable gpu("SOFTGPU", "bar1=2M");
  run_with_gpu([&] {
    GpuScratch scratch;
    AnyBuffer small = scratch.destination(Kind::kDmabuf, kGpuMemorySize);
    const uint64_t pinned = cuda().softgpu_pinned();
    const GpuMemory large(kBar);
    const auto try_large = [&] {
      return try_reg_dmabuf(scratch.net, scratch.link.recv, large.at(), kBar);
    };
    clear_log();
    BL_MUST(try_large().result != ncclSuccess);
    must_name(the_only_warning(), {"dma-buf", "peer memory", "Cannot allocate memory"});
    BL_MUST(cuda().softgpu_pinned() == pinned);
    scratch.carry_to(small, kGpuMemorySize, 1);
    small.mr().drop();
    const Registered registered = try_large();
    BL_MUST_SUCCEED(registered.result);
    BL_MUST_SUCCEED(scratch.net.dereg_mr(scratch.link.recv.raw(), registered.mhandle));
    must_hold_no_gpu_memory();
  });
}

TEST_CASE("gpu memory: a range that is not GPU memory throughout is an error",
          "[contract][gpu][gpu_memory][softnic]") {
  if (!kProcessesWork) return;  // the plugin limits how often it logs the same warning
  run_with_gpu([&] {
    GpuScratch scratch;
    const auto must_refuse = [&](uint8_t* start, size_t size) {
      clear_log();
      BL_MUST(try_reg_pointer(scratch.net, scratch.link.recv, start, size).result != ncclSuccess);
      (void)the_only_warning();
      must_hold_no_gpu_memory();
    };
    std::optional<GpuMemory> memory(kGpuMemorySize);
    uint8_t* const start = memory->at();
    must_refuse(start, size_t{1} << 30);
    memory.reset();
    must_refuse(start, kGpuMemorySize);
    AnyBuffer to = scratch.destination(Kind::kPeermem);
    scratch.carry_to(to, kGpuMemorySize, 1);
  });
}

// Whichever driver call fails, the registration either succeeds or leaves nothing behind.
TEST_CASE("gpu memory: an error of the driver at any of its calls leaves nothing behind",
          "[contract][gpu][gpu_memory][softnic]") {
  if (!kProcessesWork) return;
  const std::string way = GENERATE("peermem=yes", "peermem=no");
  CAPTURE(way);
  run_with_gpu([&] {
    GpuScratch scratch;
    const GpuMemory memory(kGpuMemorySize);
    const Levels before = levels();
    size_t failed = 0;
    for (const char* const call :
         {"cuPointerGetAttribute", "cuPointerGetAttributes", "cuMemGetAddressRange",
          "cuMemGetHandleForAddressRange", "cuDeviceGet", "cuDeviceGetAttribute",
          "cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent",
          "cuCtxGetCurrent", "cuCtxGetDevice"}) {
      for (const int turn : {1, 2, 3}) {
        cuda().set((way + ",fail=" + call + "@" + std::to_string(turn) + ":304").c_str());
        const Registered registered =
            try_reg_pointer(scratch.net, scratch.link.recv, memory.at(), memory.size());
        if (registered.result != ncclSuccess) ++failed;
        cuda().set("");
        BL_MUST_SUCCEED(scratch.net.dereg_mr(scratch.link.recv.raw(), registered.mhandle));
        must_hold_no_gpu_memory();
        must_return_to(before);
      }
    }
    // Without peer memory, a failure to export the dma-buf cannot be avoided.
    BL_MUST(way == "peermem=yes" || failed > 0);
    AnyBuffer to = scratch.destination(Kind::kDmabuf);
    scratch.carry_to(to, kGpuMemorySize, 1);
  });
}

TEST_CASE("gpu memory: one thread registers and drops while another moves data",
          "[contract][gpu][gpu_memory][softnic]") {
  const Service registers = [](const End& end, const std::atomic<bool>& over) {
    start_gpu();
    const GpuMemory memory(1 << 20);
    std::mt19937 random(1);
    while (!over) {
      const size_t offset = random() % memory.size();
      const size_t size = 1 + random() % (memory.size() - offset);
      Mr one = reg_gpu(end.net(), end.comm, Kind::kDmabuf, memory.at(offset), size);
      Mr other = reg_gpu(end.net(), end.comm, Kind::kPeermem, memory.at(offset), size);
      one.drop();
      other.drop();
      sched_yield();
    }
  };
  run_gpu_flow(
      usual_way(),
      [&](Sender& end) {
        run_beside(registers, end, [&] { send_messages(end, kGpuMemorySize, 200); });
      },
      [&](Receiver& end) {
        run_beside(registers, end, [&] { receive_messages(end, kGpuMemorySize, 200); });
      });
}
