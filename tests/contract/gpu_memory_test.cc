// SPDX-License-Identifier: Apache-2.0
//
// regMrDmaBuf, regMr and deregMr of GPU memory: if one way of registering it is refused, the plugin
// tries the other. A registration that fails leaves nothing behind and logs why.
#include <unistd.h>

#include <optional>
#include <random>

#include "tests/contract/gpu.h"
#include "tests/contract/levels.h"
#include "tests/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;
using beeline::UniqueFd;

namespace {

constexpr size_t kGpuMemoryPage = 4096;
constexpr size_t kGpuMemorySize = 4 * kGpuMemoryPage;

// A session with a connection to itself, and a source buffer on the host.
struct GpuScratch : LinkedSession {
  explicit GpuScratch(Abi abi)
      : LinkedSession(abi), source(net, link.send, Kind::kHost, kGpuMemorySize) {}

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

TEST_CASE("gpu memory: deregistering NULL is no error", "[contract][gpu][gpu_memory][softnic]") {
  const Abi abi = GENERATE(from_range(every_abi()));
  CAPTURE(abi);
  run_with_gpu([&] {
    const GpuScratch scratch(abi);
    BL_MUST_SUCCEED(scratch.net.dereg_mr(scratch.link.send.raw(), nullptr));
    BL_MUST_SUCCEED(scratch.net.dereg_mr(scratch.link.recv.raw(), nullptr));
  });
}

TEST_CASE("gpu memory: deregistering releases all of it", "[contract][gpu][gpu_memory][softnic]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  const bool flushes = GENERATE(false, true);
  CAPTURE(abi, flushes);
  if (flushes && !kProcessesWork) return;
  const Variable gpu("SOFTGPU", flushes ? "ordering=none,compute=8.0" : "");
  run_with_gpu([&] {
    GpuScratch scratch(abi);
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

TEST_CASE("gpu memory: peer memory replaces a dma-buf that is refused",
          "[contract][gpu][gpu_memory][softnic]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_with_gpu([&] {
    GpuScratch scratch(abi);
    const NoDmabuf refused;
    GpuMemory memory(kGpuMemorySize);
    clear_log();
    const Registered registered =
        reg_with(scratch.net, scratch.link.recv, refused.fd.get(), memory);
    BL_MUST_SUCCEED(registered.result);
    Mr mr = Mr::take(scratch.net, scratch.link.recv, registered.mhandle);
    scratch.source.fill(0, kGpuMemorySize, 1);
    memory.expect(0, kGpuMemorySize, 1);
    carry(scratch.net, scratch.link, scratch.source.part(0, kGpuMemorySize),
          {memory.at(), kGpuMemorySize, 0, mr.raw()});
    memory.must_hold();
    BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
    mr.drop();
    must_hold_no_gpu_memory();
  });
}

TEST_CASE("gpu memory: a dma-buf replaces a pointer that is refused",
          "[contract][gpu][gpu_memory][softnic]") {
  if (!kProcessesWork) return;
  const Abi abi = GENERATE(from_range(main_abis()));
  const size_t skip = GENERATE(size_t{0}, kGpuMemoryPage + 904);
  CAPTURE(abi, skip);
  const Variable gpu("SOFTGPU", "peermem=no");
  run_with_gpu([&] {
    GpuScratch scratch(abi);
    clear_log();
    AnyBuffer to(scratch.net, scratch.link.recv, Kind::kPeermem, kGpuMemorySize - 100, skip);
    scratch.carry_to(to, kGpuMemorySize - 100, 1);
    BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
    to.mr().drop();
    must_hold_no_gpu_memory();
  });
}

TEST_CASE("gpu memory: where both ways are refused, from a dma-buf on, the error has both causes",
          "[contract][gpu][gpu_memory][softnic]") {
  if (!kProcessesWork) return;
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_with_gpu([&] {
    GpuScratch scratch(abi);
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

TEST_CASE("gpu memory: where both ways are refused, from a pointer on, the error has both causes",
          "[contract][gpu][gpu_memory][softnic]") {
  if (!kProcessesWork) return;
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_with_gpu([&] {
    GpuScratch scratch(abi);
    const GpuMemory memory(kGpuMemorySize);
    const Levels before = levels();
    cuda().set("peermem=no,fail=cuMemGetHandleForAddressRange@1:2");
    clear_log();
    const Registered registered =
        try_reg_pointer(scratch.net, scratch.link.recv, memory.at(), memory.size());
    must_have_failed(scratch, registered,
                     {"peer memory", "Bad address", "dma-buf", "CUDA_ERROR_OUT_OF_MEMORY"}, before);
  });
}

TEST_CASE("gpu memory: where BAR1 is full there is an error, and room when something is dropped",
          "[contract][gpu][gpu_memory][softnic]") {
  if (!kProcessesWork) return;
  const Abi abi = GENERATE(from_range(some_abis()));
  const Kind kind = GENERATE(Kind::kDmabuf, Kind::kPeermem);
  CAPTURE(abi, kind);
  constexpr size_t kBar = size_t{2} << 20;
  const Variable gpu("SOFTGPU", "bar1=2M");
  run_with_gpu([&] {
    GpuScratch scratch(abi);
    AnyBuffer small = scratch.destination(kind, kGpuMemorySize);
    const uint64_t pinned = cuda().softgpu_pinned();
    const GpuMemory large(kBar);
    const auto try_large = [&] {
      return kind == Kind::kDmabuf
                 ? try_reg_dmabuf(scratch.net, scratch.link.recv, large.at(), kBar)
                 : try_reg_pointer(scratch.net, scratch.link.recv, large.at(), kBar);
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
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_with_gpu([&] {
    GpuScratch scratch(abi);
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
  const Abi abi = GENERATE(from_range(some_abis()));
  const std::string way = GENERATE("peermem=yes", "peermem=no");
  CAPTURE(abi, way);
  run_with_gpu([&] {
    GpuScratch scratch(abi);
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

TEST_CASE("gpu memory: after deregMr nothing lands in it", "[contract][gpu][gpu_memory][softnic]") {
  const Way way = GENERATE(from_range(some_ways()));
  const Kind kind = GENERATE(Kind::kDmabuf, Kind::kPeermem);
  CAPTURE(way, kind);
  const uint32_t rounds = repetitions(15, 5);
  constexpr size_t kBig = 2U << 20;
  run_gpu_flow(
      way,
      [&](Sender& end) {
        end.comm.close();
        Memory memory(kBig);
        memory.fill(0, kBig, 1);
        for (uint32_t round = 0; round < rounds; ++round) {
          const Comm comm = connect_to_peer(end.peer, end.session, 0);
          const Mr mr(end.net(), comm, memory);
          end.peer.meet();
          // The receiver drops its buffer about now. The sends may succeed or fail, but must not
          // stay pending.
          const Part part{memory.at(), kBig, 0, mr.raw()};
          std::vector<Request> requests;
          for (int i = 0; i < 50 && requests.size() < 2; ++i) {
            auto [result, request] = any_isend(end.net(), comm, part);
            if (result != ncclSuccess) break;
            if (request) requests.push_back(request);
          }
          for (Request& request : requests) (void)request.try_poll();
          end.peer.meet();
        }
      },
      [&](Receiver& end) {
        end.comm.close();
        for (uint32_t round = 0; round < rounds; ++round) {
          const Comm comm = accept_from_peer(end.peer, end.session, last_device(end.session));
          GpuMemory memory(kBig);
          Mr mr = reg_gpu(end.net(), comm, kind, memory.at(), kBig);
          const Part part{memory.at(), kBig, 0, mr.raw()};
          irecv(end.net(), comm, part);
          irecv(end.net(), comm, part);
          end.peer.meet();
          for (uint32_t i = 0; i < round * 10; ++i) sched_yield();
          mr.drop();
          must_hold_no_gpu_memory();
          memory.fill(0, kBig, 1000 + round);
          end.peer.meet();
          memory.must_hold();
        }
      });
}

TEST_CASE("gpu memory: one thread registers and drops while another moves data",
          "[contract][gpu][gpu_memory][softnic]") {
  const Way way = GENERATE(from_range(some_ways()));
  CAPTURE(way);
  constexpr uint32_t kMessages = 200;
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
      way,
      [&](Sender& end) {
        run_beside(registers, end, [&] {
          std::vector<AnyBuffer> buffers = one_of_each(end, kGpuMemorySize);
          for (uint32_t i = 0; i < kMessages; ++i) {
            AnyBuffer& buffer = buffers[i % buffers.size()];
            buffer.fill(0, kGpuMemorySize, i);
            end.send(buffer.part(0, kGpuMemorySize)).finish();
          }
        });
      },
      [&](Receiver& end) {
        run_beside(registers, end, [&] {
          std::vector<AnyBuffer> buffers = one_of_each(end, kGpuMemorySize);
          for (uint32_t i = 0; i < kMessages; ++i) {
            AnyBuffer& buffer = buffers[(i / 2) % buffers.size()];
            buffer.expect(0, kGpuMemorySize, i);
            const Part part = buffer.part(0, kGpuMemorySize);
            end.receive(part).finish();
            finish_flush(end.flush(part, kGpuMemorySize));
            buffer.must_hold();
          }
        });
      });
}
