// SPDX-License-Identifier: Apache-2.0
//
// GPU memory that softnic cannot map, such as that of a real GPU: softnic copies it with the
// driver's calls. The setting nic=copies makes softgpu behave so.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include "softnic/fabric/arena.h"
#include "tests/beds/softgpu/gpu_memory.h"

namespace {

using namespace beeline::test;
using beeline::UniqueFd;
using softnic::gpu::PointerAttribute;

const Environment kCopies = {{"SOFTGPU", "nic=copies"}};

// Two connected processes, the first with host memory, the second with GPU memory.
struct HostSide {
  Peer& peer;
  Endpoint& end;
  Region gpu;  // of the other process
};
struct GpuSide {
  Peer& peer;
  Cuda& cuda;
  Endpoint& end;
  const GpuMemory& memory;
};

void between_processes(Way way, const std::function<void(HostSide)>& host,
                       const std::function<void(GpuSide)>& gpu) {
  const TestFabric fabric;
  run_peers(PeerMode::kProcesses,
            {[&](Peer& peer) {
               Endpoint end("softnic0");
               connect(end.qp, peer.exchange(address_of(end.qp)), kAtomicWire);
               host({peer, end, peer.receive<Region>(1)});
               peer.meet();
             },
             [&](Peer& peer) {
               Cuda cuda;
               cuda.start();
               cuda.set("nic=copies");
               Endpoint end("softnic1");
               const GpuMemory memory(cuda, end.pd.get(), way, 512);
               connect(end.qp, peer.exchange(address_of(end.qp)), kAtomicWire);
               peer.send(0, memory.all());
               gpu({peer, cuda, end, memory});
               peer.meet();
             }});
}

// Waits until it is true, without calling verbs.
template <class Condition>
void must_come_true(Condition&& condition) {
  const auto deadline = Clock::now() + kPatience;
  while (!condition()) {
    BL_MUST(Clock::now() < deadline);
    std::this_thread::yield();
  }
}

// The check that failed in a thread, which cannot throw it.
template <class Body>
std::string complaint_of(Body&& body) {
  try {
    body();
    return {};
  } catch (const MustError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("copies: data is on the GPU before its completion is returned", "[copies]") {
  if (!kProcessesWork) return;
  const Way way = any_way();
  INFO(way);
  constexpr std::uint32_t kRounds = 300;
  between_processes(
      way,
      [](const HostSide& side) {
        Buffer data = side.end.buffer(kSize);
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
          data.fill(round);
          BL_MUST_OK(post(side.end.qp, write_imm_work(data.all(), side.gpu, round, round)));
          must_complete(side.end.send_cq.get(), round);
          (void)side.peer.exchange(round);
        }
      },
      [](const GpuSide& side) {
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
          BL_MUST_OK(post(side.end.qp, RecvWork{.wr_id = round}));
          must_complete(side.end.recv_cq.get(), round);
          BL_MUST(side.memory.has(round));
          (void)side.peer.exchange(round);
        }
      });
}

TEST_CASE("copies: data that arrives is copied to the GPU without any polling", "[copies]") {
  if (!kProcessesWork) return;
  const Way way = any_way();
  INFO(way);
  between_processes(
      way,
      [](const HostSide& side) {
        Buffer data = side.end.buffer(kSize);
        data.fill(1);
        BL_MUST_OK(post(side.end.qp, write_work(data.all(), side.gpu, 1)));
        must_complete(side.end.send_cq.get(), 1);
      },
      [](const GpuSide& side) { must_come_true([&] { return side.memory.has(1); }); });
}

// While the process of the GPU is stopped, the list is not emptied, and the writer has to wait.
TEST_CASE("copies: more small writes than the list holds", "[copies]") {
  if (!kProcessesWork) return;
  constexpr std::size_t kStride = 16;
  constexpr std::size_t kPieces = softnic::kMaxDeferred + 512;
  static_assert(kPieces * kStride <= kSize);
  between_processes(
      any_way(),
      [](const HostSide& side) {
        Buffer data = side.end.buffer(kSize);
        data.fill(1);
        const auto owner = side.peer.receive<pid_t>(1);
        BL_MUST_OK(::kill(owner, SIGSTOP));
        std::string complaint;
        std::thread poster([&] {
          complaint = complaint_of([&] {
            for (std::size_t i = 0; i < kPieces; ++i) {
              const auto at = static_cast<std::int64_t>(i * kStride);
              const SendWork work = write_work(data.all().moved(at, 8), side.gpu.moved(at, 8), i);
              must_come_true([&] { return post(side.end.qp, work) == 0; });
            }
          });
        });
        const std::string pollers_complaint = complaint_of([&] {
          for (std::size_t i = 0; i < kPieces; ++i) {
            if (i == softnic::kMaxDeferred) BL_MUST_OK(::kill(owner, SIGCONT));
            must_complete(side.end.send_cq.get(), i);
          }
        });
        poster.join();
        BL_MUST(complaint + pollers_complaint == "");
        side.peer.send(1, true);
      },
      [](const GpuSide& side) {
        side.peer.send(0, ::getpid());
        BL_MUST(side.peer.receive<bool>(0));
        Bytes wanted(kSize);
        const Bytes full = pattern(kSize, 1);
        for (std::size_t i = 0; i < kPieces; ++i) {
          std::memcpy(&wanted[i * kStride], &full[i * kStride], 8);
        }
        must_come_true([&] { return side.memory.look() == wanted; });
      });
}

TEST_CASE("copies: sent data does not overwrite data that arrives", "[copies]") {
  if (!kProcessesWork) return;
  const Way way = any_way();
  INFO(way);
  constexpr std::uint64_t kRounds = 2000;
  between_processes(
      way,
      [](const HostSide& side) {
        Buffer data = side.end.buffer(8);
        for (std::uint64_t round = 1; round <= kRounds; ++round) {
          std::memcpy(data.data(), &round, sizeof round);
          BL_MUST_OK(post(side.end.qp, write_imm_work(data.all(), side.gpu.moved(0, 8), 1, round)));
          must_complete(side.end.send_cq.get(), round);
          (void)side.peer.exchange(round);
        }
      },
      [](const GpuSide& side) {
        std::atomic<bool> is_over{false};
        std::string readers_complaint;
        std::thread reader([&] {
          readers_complaint = complaint_of([&] {
            Flusher flusher(side.end);
            while (!is_over) flusher.flush(side.memory.part(0, 8));
          });
        });
        std::string complaint = complaint_of([&] {
          for (std::uint64_t round = 1; round <= kRounds; ++round) {
            BL_MUST_OK(post(side.end.qp, RecvWork{.wr_id = round}));
            must_complete(side.end.recv_cq.get(), round);
            BL_MUST(side.memory.look(0, 8) == word(round));
            (void)side.peer.exchange(round);
          }
        });
        is_over = true;
        reader.join();
        complaint += readers_complaint;
        if (!complaint.empty()) throw MustError(complaint);
      });
}

TEST_CASE("copies: a READ of another process is refused", "[copies]") {
  if (!kProcessesWork) return;
  const Way way = any_way();
  const bool is_atomic = GENERATE(false, true);
  INFO(way << (is_atomic ? ", atomic" : ", READ"));
  between_processes(
      way,
      [=](const HostSide& side) {
        Buffer data = side.end.buffer(8);
        const Region there = side.gpu.moved(0, 8);
        BL_MUST_OK(is_atomic ? post(side.end.qp, fetch_add(data.all(), there, 1, 1))
                             : post(side.end.qp, read_work(data.all(), there, 1)));
        BL_MUST(poll_one(side.end.send_cq.get()).status == IBV_WC_REM_OP_ERR);
      },
      [](const GpuSide& side) { BL_MUST(is_zero(side.memory.look())); });
}

TEST_CASE("copies: a deregistration copies the last bytes", "[copies]") {
  if (!kProcessesWork) return;
  const Way way = any_way();
  INFO(way);
  constexpr std::uint32_t kRounds = 30;
  between_processes(
      way,
      [](const HostSide& side) {
        Buffer data = side.end.buffer(kSize);
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
          data.fill(round);
          const auto there = side.peer.receive<Region>(1);
          BL_MUST_OK(post(side.end.qp, write_work(data.all(), there, round)));
          must_complete(side.end.send_cq.get(), round);
          side.peer.send(1, round);
        }
      },
      [=](const GpuSide& side) {
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
          GpuMemory memory(side.cuda, side.end.pd.get(), way, 8);
          side.peer.send(0, memory.all());
          BL_MUST(side.peer.receive<std::uint32_t>(0) == round);
          memory.mr.reset();
          BL_MUST(memory.has(round));
        }
      });
}

TEST_CASE("copies: registering and deregistering leave nothing behind", "[copies]") {
  const Way way = any_way();
  INFO(way);
  in_process(
      [&](Cuda& cuda) {
        cuda.start();
        const TestFabric fabric;
        const Nic nic("softnic0");
        const std::uint64_t contexts = cuda.softgpu_calls("cuDevicePrimaryCtxRetain");
        const UniqueFd before(dup(0));
        for (int i = 0; i < 100; ++i) {
          const GpuMemory gpu(cuda, nic.pd.get(), way, 8);
          CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(gpu.allocation));
        }
        const UniqueFd after(dup(0));
        BL_MUST(after.get() == before.get() + 1);
        BL_MUST(cuda.softgpu_calls("cuCtxCreate") == 1);
        BL_MUST(cuda.softgpu_calls("cuStreamCreateWithPriority") == 2);
        BL_MUST(cuda.softgpu_calls("cuDevicePrimaryCtxRetain") - contexts ==
                cuda.softgpu_calls("cuDevicePrimaryCtxRelease"));
        BL_MUST(cuda.softgpu_pinned() == 0 && cuda.softgpu_open_handles() == 0);
      },
      kCopies);
}

namespace {

// Represents a kernel that waits for data.
struct Kernel {
  std::atomic<bool> may_end{false};
  std::atomic<bool> gave_up{false};

  static void run(void* argument) {
    auto& self = *static_cast<Kernel*>(argument);
    const auto deadline = Clock::now() + kPatience / 2;
    while (!self.may_end && !self.gave_up) {
      if (Clock::now() > deadline) self.gave_up = true;
      std::this_thread::yield();
    }
  }
};

}  // namespace

TEST_CASE("copies: a kernel that waits for data in many regions gets it", "[copies]") {
  const std::string settings = GENERATE("nic=copies,queues=1", "nic=copies,queues=8");
  INFO(settings);
  in_process(
      [&](Cuda& cuda) {
        cuda.start();
        Pair pair;
        Buffer data = pair.a.buffer(kSize);
        data.fill(1);
        std::vector<std::unique_ptr<GpuMemory>> regions(20);
        for (auto& region : regions) {
          region = std::make_unique<GpuMemory>(cuda, pair.b.pd.get(), Way::kPeermem);
        }
        Kernel kernel;
        softnic::gpu::Stream* stream = nullptr;
        CU_MUST(cuda, kSuccess, cuda.cuStreamCreateWithPriority(&stream, 1, -5));
        CU_MUST(cuda, kSuccess, cuda.cuLaunchHostFunc(stream, Kernel::run, &kernel));
        for (const auto& region : regions) {
          BL_MUST_OK(post(pair.b.qp, RecvWork{.wr_id = 2}));
          BL_MUST_OK(post(pair.a.qp, write_imm_work(data.all(), region->all(), 1, 1)));
          must_complete(pair.a.send_cq.get(), 1);
          must_complete(pair.b.recv_cq.get(), 2);
          BL_MUST(region->has(1));
          // From the GPU, too.
          BL_MUST_OK(post(pair.a.qp, recv_work(data.all(), 3)));
          BL_MUST_OK(post(pair.b.qp, send_work(region->all(), 4)));
          must_complete(pair.a.recv_cq.get(), 3);
          must_complete(pair.b.send_cq.get(), 4);
        }
        BL_MUST(!kernel.gave_up);
        CU_MUST(cuda, kNotReady, cuda.cuStreamQuery(stream));
        kernel.may_end = true;
        CU_MUST(cuda, kSuccess, cuda.cuStreamSynchronize(stream));
        BL_MUST(cuda.softgpu_calls("cuStreamCreateWithPriority") == 3);
        CU_MUST(cuda, kSuccess, cuda.cuStreamDestroy_v2(stream));
      },
      {{"SOFTGPU", settings}});
}

// Such a call waits for the kernel, and other calls in the program's context wait for that call.
TEST_CASE("copies: a call that waits for a kernel does not hold up the kernel's data", "[copies]") {
  in_process(
      [&](Cuda& cuda) {
        cuda.start();
        Pair pair;
        Buffer data = pair.a.buffer(kSize);
        data.fill(1);
        const GpuMemory region(cuda, pair.b.pd.get(), Way::kPeermem);
        const DevicePtr other = cuda.allocate(kPage);
        Kernel kernel;
        softnic::gpu::Stream* stream = nullptr;
        CU_MUST(cuda, kSuccess, cuda.cuStreamCreate(&stream, 1));
        CU_MUST(cuda, kSuccess, cuda.cuLaunchHostFunc(stream, Kernel::run, &kernel));
        softnic::gpu::Context* context = nullptr;
        CU_MUST(cuda, kSuccess, cuda.cuCtxGetCurrent(&context));
        softnic::gpu::CuResult freed{};
        std::thread freer([&] {
          (void)cuda.cuCtxSetCurrent(context);
          freed = cuda.cuMemFree_v2(other);
        });
        const std::string complaint = complaint_of([&] {
          must_come_true([&] { return cuda.softgpu_calls("cuMemFree") == 1; });
          BL_MUST_OK(post(pair.b.qp, RecvWork{.wr_id = 2}));
          BL_MUST_OK(post(pair.a.qp, write_imm_work(data.all(), region.all(), 1, 1)));
          must_complete(pair.a.send_cq.get(), 1);
          must_complete(pair.b.recv_cq.get(), 2);
          BL_MUST(region.has(1));
          BL_MUST(!kernel.gave_up);
        });
        kernel.may_end = true;
        freer.join();
        BL_MUST(complaint == "");
        BL_MUST(freed == softnic::gpu::CuResult::kSuccess);
        CU_MUST(cuda, kSuccess, cuda.cuStreamDestroy_v2(stream));
      },
      {{"SOFTGPU", "nic=copies,queues=8"}});
}

TEST_CASE("copies: no region is registered without a context for copies", "[copies]") {
  const std::string call = GENERATE("cuCtxCreate", "cuStreamCreateWithPriority");
  INFO(call);
  const CudaEnding ending = end_of_process(
      [&](Cuda& cuda) {
        cuda.start();
        const TestFabric fabric;
        const Nic nic("softnic0");
        const DevicePtr device = cuda.allocate(kPage);
        const auto registered = [&] {
          errno = 0;
          return MrPtr(ibv_reg_mr(nic.pd.get(), pointer(device), kPage, kAllAccess)) != nullptr;
        };
        cuda.set(("nic=copies,fail=" + call + "@1:2").c_str());
        BL_MUST(!registered() && errno == ENOMEM);
        BL_MUST(registered());
      },
      kCopies);
  CHECK(ending.complaint == "");
  CHECK(ending.diagnostics.find("cannot register GPU memory (" + call +
                                ": CUDA_ERROR_OUT_OF_MEMORY)") != std::string::npos);
}

// NICs get whole pages, and the driver does not know the bytes of these pages that are not of the
// allocation.
TEST_CASE("copies: the whole pages of an allocation can be registered", "[copies]") {
  const Way way = any_way();
  const std::string settings = GENERATE("nic=copies", "nic=copies,packed=yes");
  const std::size_t size = GENERATE(std::size_t{100}, kPage + 100, 5 * kPage + 100);
  INFO(way << ", " << settings << ", " << size << " bytes");
  in_process(
      [&](Cuda& cuda) {
        cuda.start();
        Pair pair;
        const DevicePtr device = cuda.allocate(size);
        const DevicePtr start = device / kPage * kPage;
        const std::size_t length = (device + size - start + kPage - 1) / kPage * kPage;
        int gpu = -1;
        CU_MUST(
            cuda, kInvalidValue,
            cuda.cuPointerGetAttribute(&gpu, PointerAttribute::kDeviceOrdinal, start + length - 1));
        const UniqueFd handle(cuda.handle(start, length));
        ibv_pd* const pd = pair.b.pd.get();
        const auto registered = [&](std::size_t bytes) {
          return MrPtr(way == Way::kDmabuf
                           ? ibv_reg_dmabuf_mr(pd, 0, bytes, start, handle.get(), kAtomicAccess)
                           : ibv_reg_mr(pd, pointer(start), bytes, kAtomicAccess));
        };
        const MrPtr mr = registered(length);
        BL_MUST(mr != nullptr);
        BL_MUST(registered(length + kPage) == nullptr);
        const auto bytes = static_cast<std::uint32_t>(size);
        Buffer data = pair.a.buffer(size);
        data.fill(1);
        BL_MUST_OK(post(pair.b.qp, RecvWork{.wr_id = 2}));
        const Region region = {device, bytes, mr->lkey, mr->rkey};
        BL_MUST_OK(post(pair.a.qp, write_imm_work(data.all(), region, 1, 1)));
        must_complete(pair.a.send_cq.get(), 1);
        must_complete(pair.b.recv_cq.get(), 2);
        Bytes there(size);
        BL_MUST_OK(cuda.softgpu_read(pointer(device), there.data(), size));
        BL_MUST(has_pattern(there, 1));
      },
      {{"SOFTGPU", settings}});
}

TEST_CASE("copies: a handle must be registered for its own device pointer", "[copies]") {
  const CudaEnding ending = end_of_process(
      [](Cuda& cuda) {
        cuda.start();
        const TestFabric fabric;
        const Nic nic("softnic0");
        const DevicePtr device = cuda.allocate(2 * kPage);
        const UniqueFd handle(cuda.handle(device, 2 * kPage));
        const auto error = [&](std::uint64_t iova) {
          errno = 0;
          const MrPtr mr(
              ibv_reg_dmabuf_mr(nic.pd.get(), 0, 2 * kPage, iova, handle.get(), kAllAccess));
          return mr == nullptr ? errno : 0;
        };
        BL_MUST(error(device) == 0);
        BL_MUST(error(0) == EFAULT);
        BL_MUST(error(device + kPage) == EFAULT);  // nothing is allocated in its last page
      },
      kCopies);
  CHECK(ending.complaint.empty());
  CHECK(ending.diagnostics.find("register the dma-buf of a real GPU with its device pointer") !=
        std::string::npos);
}

TEST_CASE("copies: a failed copy is reported once", "[copies]") {
  const std::string call = GENERATE("cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync");
  INFO(call);
  const CudaEnding ending = end_of_process(
      [&](Cuda& cuda) {
        cuda.start();
        const TestFabric fabric;
        Endpoint a("softnic0");
        Endpoint b("softnic1");
        connect_both(a.qp, b.qp);
        Buffer data = a.buffer(64);
        const GpuMemory gpu(cuda, b.pd.get(), Way::kPeermem);
        // It is printed although another message was printed before.
        cuda.set("nic=copies,fail=cuStreamSynchronize@1:201");
        BL_MUST_OK(post(a.qp, write_work(data.all(), gpu.part(0, 64), 0)));
        must_complete(a.send_cq.get(), 0);
        must_come_true([&] { return cuda.softgpu_calls("cuStreamSynchronize") == 1; });
        const std::string turns = "nic=copies,fail=" + call + "@1:201,fail=" + call + "@2:201";
        cuda.set(turns.c_str());
        BL_MUST_OK(post(a.qp, write_work(data.all(), gpu.part(0, 64), 1)));
        must_complete(a.send_cq.get(), 1);
        // The send fails if copies from the GPU fail. If copies to the GPU fail, it sends old
        // bytes.
        BL_MUST_OK(post(b.qp, send_work(gpu.part(0, 64), 2)));
        const ibv_wc_status wanted =
            call == "cuMemcpyDtoHAsync" ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
        if (wanted == IBV_WC_SUCCESS) BL_MUST_OK(post(a.qp, recv_work(data.all(), 3)));
        BL_MUST(poll_one(b.send_cq.get()).status == wanted);
      },
      kCopies);
  CHECK(ending.complaint == "");
  const std::string said = "cannot copy between host and GPU (" + call;
  const std::size_t first = ending.diagnostics.find(said);
  CHECK(first != std::string::npos);
  CHECK(ending.diagnostics.find(said, first + 1) == std::string::npos);
  CHECK(ending.diagnostics.find("cannot copy between host and GPU (cuStreamSynchronize") !=
        std::string::npos);
}
