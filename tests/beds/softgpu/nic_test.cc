// SPDX-License-Identifier: Apache-2.0
//
// GPU memory that is registered with softnic devices, by its pointer (peer memory) and by the
// handle of an address range (dma-buf). The bytes are checked by softgpu_read, because the CPU
// cannot access device pointers.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "tests/beds/softgpu/gpu_memory.h"

namespace {

using namespace beeline::test;
using beeline::UniqueFd;

enum class Operation {
  kWrite,
  kWriteImm,
  kRead,
  kReadInto,
  kSendInto,
  kSendOutOf,
  kFetchAdd,
  kCompareSwap
};

// `host` is at one end, `gpu` at the other. Adjacent bytes must not change.
void must_move(Operation operation, Endpoint& a, Endpoint& b, Buffer& host, const GpuMemory& gpu) {
  const std::size_t length = host.size();
  constexpr std::size_t kAt = 16;
  switch (operation) {
    case Operation::kWrite:
    case Operation::kWriteImm: {
      host.fill(1);
      SendWork work = write_imm_work(host.all(), gpu.part(kAt, length), 7, 1);
      if (operation == Operation::kWrite) work.opcode = IBV_WR_RDMA_WRITE;
      BL_MUST_OK(post(b.qp, RecvWork{.wr_id = 5}));
      BL_MUST_OK(post(a.qp, work));
      must_complete(a.send_cq.get(), 1);
      if (operation == Operation::kWriteImm) must_complete(b.recv_cq.get(), 5);
      break;
    }
    case Operation::kRead:
      gpu.put(kAt, pattern(length, 1));
      BL_MUST_OK(post(a.qp, read_work(host.all(), gpu.part(kAt, length), 1)));
      must_complete(a.send_cq.get(), 1);
      BL_MUST(host.has(1));
      break;
    case Operation::kReadInto:
      host.fill(1);
      BL_MUST_OK(post(b.qp, read_work(gpu.part(kAt, length), host.all(), 1)));
      must_complete(b.send_cq.get(), 1);
      break;
    case Operation::kSendInto:
      host.fill(1);
      BL_MUST_OK(post(b.qp, recv_work(gpu.part(kAt, length), 5)));
      BL_MUST_OK(post(a.qp, send_work(host.all(), 1)));
      must_complete(b.recv_cq.get(), 5);
      break;
    case Operation::kSendOutOf:
      gpu.put(kAt, pattern(length, 1));
      BL_MUST_OK(post(a.qp, recv_work(host.all(), 5)));
      BL_MUST_OK(post(b.qp, send_work(gpu.part(kAt, length), 1)));
      must_complete(a.recv_cq.get(), 5);
      BL_MUST(host.has(1));
      break;
    case Operation::kFetchAdd:
    case Operation::kCompareSwap: {
      gpu.put(kAt, word(40));
      const Region target = gpu.part(kAt, 8);
      BL_MUST_OK(post(a.qp, operation == Operation::kFetchAdd
                                ? fetch_add(host.part(0, 8), target, 2, 1)
                                : compare_swap(host.part(0, 8), target, 40, 42, 1)));
      must_complete(a.send_cq.get(), 1);
      const std::uint64_t before = 40;
      BL_MUST(std::memcmp(host.data(), &before, sizeof before) == 0);
      BL_MUST(gpu.look(kAt, 8) == word(42));
      BL_MUST(is_zero(gpu.look(kAt + 8, gpu.size - kAt - 8)));
      return;
    }
  }
  BL_MUST(has_pattern(gpu.look(kAt, length), 1));
  BL_MUST(is_zero(gpu.look(0, kAt)));
  BL_MUST(is_zero(gpu.look(kAt + length, gpu.size - kAt - length)));
  BL_MUST(host.guards_intact());
}

softnic::FabricSpec hiding() {
  softnic::FabricSpec spec = softnic::default_fabric();
  spec.hazards.hide = true;
  return spec;
}

}  // namespace

TEST_CASE("nic: all operations reach GPU memory", "[nic]") {
  const Way way = any_way();
  const Operation operation = GENERATE(
      Operation::kWrite, Operation::kWriteImm, Operation::kRead, Operation::kReadInto,
      Operation::kSendInto, Operation::kSendOutOf, Operation::kFetchAdd, Operation::kCompareSwap);
  // An allocation's start, and places within pages.
  const std::size_t offset = GENERATE(std::size_t{0}, std::size_t{8}, 3 * kPage + 904);
  const std::string settings = GENERATE("nic=maps", "nic=copies");
  INFO(way << ", operation " << static_cast<int>(operation) << ", offset " << offset << ", "
           << settings);
  in_process(
      [&](Cuda& cuda) {
        cuda.start();
        Pair pair({.wire = kAtomicWire});
        const GpuMemory gpu(cuda, pair.b.pd.get(), way, offset);
        Buffer host = pair.a.buffer(5 * kPage + 24);
        must_move(operation, pair.a, pair.b, host, gpu);
      },
      {{"SOFTGPU", settings}});
}

namespace {

// Imitates Linux before 5.14, without MADV_POPULATE_READ and MADV_POPULATE_WRITE (22, 23).
void forget_to_populate() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 22, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 23, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {std::size(program), program};
  BL_MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  BL_MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

}  // namespace

TEST_CASE("nic: GPU memory is recognized on kernels without MADV_POPULATE", "[nic]") {
  const std::string settings = GENERATE("nic=maps", "nic=copies", "peermem=no");
  INFO(settings);
  in_process(
      [&](Cuda& cuda) {
        forget_to_populate();
        cuda.start();
        Pair pair({.wire = kAtomicWire});
        Buffer host = pair.a.buffer(5 * kPage + 24);
        if (settings == "peermem=no") {
          const DevicePtr device = cuda.allocate(kPage);
          errno = 0;
          BL_MUST(ibv_reg_mr(pair.b.pd.get(), pointer(device), kPage, kAllAccess) == nullptr);
          BL_MUST(errno == EFAULT);
          return;
        }
        const GpuMemory gpu(cuda, pair.b.pd.get(), Way::kPeermem);
        must_move(Operation::kWriteImm, pair.a, pair.b, host, gpu);
      },
      {{"SOFTGPU", settings}});
}

TEST_CASE("nic: from one GPU's memory to another's", "[nic]") {
  const Way way = any_way();
  const std::string settings = GENERATE("gpus=2", "gpus=2,nic=copies");
  INFO(way << ", " << settings);
  in_process(
      [&](Cuda& cuda) {
        Pair pair;
        cuda.start(0);
        const GpuMemory from(cuda, pair.a.pd.get(), way, 40);
        cuda.start(1);
        const GpuMemory into(cuda, pair.b.pd.get(), way);
        from.put(0, pattern(kSize, 1));
        BL_MUST_OK(post(pair.a.qp, write_work(from.all(), into.all(), 1)));
        must_complete(pair.a.send_cq.get(), 1);
        BL_MUST(into.has(1));
      },
      {{"SOFTGPU", settings}});
}

TEST_CASE("nic: GPU memory of two processes", "[nic]") {
  if (!kProcessesWork) return;
  const Way way = any_way();
  INFO(way);
  const TestFabric fabric;
  run_peers(PeerMode::kProcesses,
            {[=](Peer& peer) {
               Cuda cuda;
               cuda.start();
               Endpoint end("softnic0");
               const GpuMemory mine(cuda, end.pd.get(), way, 512);
               Buffer answer = end.buffer(8);
               connect(end.qp, peer.exchange(address_of(end.qp)), kAtomicWire);
               const auto theirs = peer.receive<Region>(1);
               mine.put(0, pattern(kSize, 1));
               BL_MUST_OK(post(end.qp, write_work(mine.all(), theirs, 1)));
               must_complete(end.send_cq.get(), 1);
               mine.put(0, Bytes(kSize));
               BL_MUST_OK(post(end.qp, read_work(mine.all(), theirs, 2)));
               must_complete(end.send_cq.get(), 2);
               BL_MUST(mine.has(1));
               BL_MUST_OK(post(end.qp, fetch_add(answer.all(), theirs.moved(0, 8), 1, 3)));
               must_complete(end.send_cq.get(), 3);
               mine.put(0, pattern(kSize, 2));
               BL_MUST_OK(post(end.qp, send_work(mine.part(0, kPage), 4)));
               must_complete(end.send_cq.get(), 4);
               peer.meet();
             },
             [=](Peer& peer) {
               Cuda cuda;
               cuda.start();
               Endpoint end("softnic1");
               const GpuMemory mine(cuda, end.pd.get(), way, kPage + 8);
               connect(end.qp, peer.exchange(address_of(end.qp)), kAtomicWire);
               BL_MUST_OK(post(end.qp, recv_work(mine.part(2 * kPage, kPage), 9)));
               peer.send(0, mine.all());
               must_complete(end.recv_cq.get(), 9);
               std::uint64_t first = 0;
               std::memcpy(&first, pattern(8, 1).data(), 8);
               BL_MUST(mine.look(0, 8) == word(first + 1));
               BL_MUST(has_pattern(mine.look(8, 2 * kPage - 8), 1, 8));
               BL_MUST(has_pattern(mine.look(2 * kPage, kPage), 2));
               BL_MUST(has_pattern(mine.look(3 * kPage, kSize - 3 * kPage), 1, 3 * kPage));
               peer.meet();
             }});
}

TEST_CASE("nic: the registered range is the requested one", "[nic]") {
  const Way way = any_way();
  const std::int64_t by = GENERATE(-1, 1, -4096, 4096);
  INFO(way << ", moved by " << by);
  in_process([&](Cuda& cuda) {
    cuda.start();
    Pair pair;
    const GpuMemory gpu(cuda, pair.b.pd.get(), way, 2 * kPage, 2 * kPage);
    Buffer host = pair.a.buffer(2 * kPage);
    host.fill(1);
    BL_MUST_OK(post(pair.a.qp, write_work(host.all(), gpu.all().moved(by, 2 * kPage), 1)));
    BL_MUST(poll_one(pair.a.send_cq.get()).status == IBV_WC_REM_ACCESS_ERR);
    BL_MUST(is_zero(gpu.look()));
  });
}

TEST_CASE("nic: without a module for peer memory a pointer is a bad address", "[nic]") {
  const std::string settings = GENERATE("peermem=no", "gdr=no");
  INFO(settings);
  in_process([&](Cuda& cuda) {
    cuda.start();
    const TestFabric fabric;
    const Nic nic("softnic0");
    const DevicePtr device = cuda.allocate(kSize);
    const auto error = [&](DevicePtr address, std::size_t length) {
      errno = 0;
      const MrPtr mr(ibv_reg_mr(nic.pd.get(), pointer(address), length, kAllAccess));
      return mr == nullptr ? errno : 0;
    };
    BL_MUST(error(device, kSize) == 0);
    BL_MUST(error(device + 100, 10) == 0);
    BL_MUST(error(device, std::size_t{1} << 30) == EFAULT);
    cuda.set(settings.c_str());
    BL_MUST(error(device, kSize) == EFAULT);
    BL_MUST(error(device + 100, 10) == EFAULT);
    cuda.set("");
    BL_MUST(error(device, kSize) == 0);
    CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(device));
    BL_MUST(error(device, kSize) == EFAULT);
  });
}

TEST_CASE("nic: one device refuses GPU memory while another takes it", "[nic]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const TestFabric fabric;
    const Nic refusing("softnic0");
    const Nic other("softnic1");
    const DevicePtr device = cuda.allocate(kPage);
    const UniqueFd handle(cuda.handle(device, kPage));
    const auto by_pointer = [&](const Nic& nic) {
      return MrPtr(ibv_reg_mr(nic.pd.get(), pointer(device), kPage, kAllAccess));
    };
    const auto by_dmabuf = [&](const Nic& nic) {
      return MrPtr(ibv_reg_dmabuf_mr(nic.pd.get(), 0, kPage, device, handle.get(), kAllAccess));
    };
    fabric.command("h0/softnic0", "refuse-gpu=on");
    BL_MUST(by_pointer(refusing) == nullptr);
    BL_MUST(errno == EFAULT);
    BL_MUST(by_dmabuf(refusing) == nullptr);
    BL_MUST(errno == EOPNOTSUPP);
    BL_MUST(by_pointer(other) != nullptr);
    BL_MUST(by_dmabuf(other) != nullptr);
    std::vector<char> host(kPage);
    const MrPtr host_region(ibv_reg_mr(refusing.pd.get(), host.data(), host.size(), kAllAccess));
    BL_MUST(host_region != nullptr);
    BL_MUST(cuda.softgpu_pinned() == 0);
    fabric.command("h0/softnic0", "refuse-gpu=off");
    BL_MUST(by_pointer(refusing) != nullptr);
    BL_MUST(by_dmabuf(refusing) != nullptr);
  });
}

TEST_CASE("nic: a range outside of a handle cannot be registered", "[nic]") {
  in_process([](Cuda& cuda) {
    cuda.start();
    const TestFabric fabric;
    const Nic nic("softnic0");
    const DevicePtr device = cuda.allocate(8 * kPage);
    const UniqueFd handle(cuda.handle(device + kPage, 2 * kPage));
    const auto error = [&](std::uint64_t offset, std::size_t length) {
      errno = 0;
      const MrPtr mr(
          ibv_reg_dmabuf_mr(nic.pd.get(), offset, length, offset, handle.get(), kAllAccess));
      return mr == nullptr ? errno : 0;
    };
    BL_MUST(error(0, 2 * kPage) == 0);
    BL_MUST(error(2 * kPage - 1, 1) == 0);
    BL_MUST(error(0, 2 * kPage + 1) == EINVAL);
    BL_MUST(error(kPage, kPage + 1) == EINVAL);
    BL_MUST(error(2 * kPage, 1) == EINVAL);
    BL_MUST(cuda.softgpu_pinned() == 0);
  });
}

TEST_CASE("nic: a registration fails if BAR1 is full", "[nic]") {
  const Way way = any_way();
  INFO(way);
  in_process(
      [&](Cuda& cuda) {
        cuda.start();
        constexpr std::size_t kBar = std::size_t{2} << 20;
        const TestFabric fabric;
        const Nic nic("softnic0");
        const DevicePtr device = cuda.allocate(2 * kBar);
        const auto reg = [&](std::size_t offset, std::size_t length) {
          errno = 0;
          if (way == Way::kPeermem) {
            return MrPtr(ibv_reg_mr(nic.pd.get(), pointer(device + offset), length, kAllAccess));
          }
          const UniqueFd handle(cuda.handle(device + offset, length));
          return MrPtr(ibv_reg_dmabuf_mr(nic.pd.get(), 0, length, 0, handle.get(), kAllAccess));
        };
        BL_MUST(reg(0, kBar + kPage) == nullptr && errno == ENOMEM);
        MrPtr most = reg(0, kBar - kPage);
        BL_MUST(most != nullptr);
        BL_MUST(reg(kBar, 2 * kPage) == nullptr && errno == ENOMEM);
        const MrPtr rest = reg(kBar, kPage);
        BL_MUST(rest != nullptr && cuda.softgpu_pinned() == kBar);
        BL_MUST(reg(0, kPage) == nullptr && errno == ENOMEM);
        most.reset();
        BL_MUST(reg(0, kPage) != nullptr);
      },
      {{"SOFTGPU", "bar1=2M"}});
}

TEST_CASE("nic: freed memory exists until it is deregistered", "[nic]") {
  const Way way = any_way();
  INFO(way);
  in_process([&](Cuda& cuda) {
    cuda.start();
    Pair pair;
    std::size_t before = 0;
    std::size_t after = 0;
    CU_MUST(cuda, kSuccess, cuda.cuMemGetInfo_v2(&before, nullptr));
    GpuMemory gpu(cuda, pair.b.pd.get(), way);
    BL_MUST(cuda.softgpu_pinned() >= kSize);
    CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(gpu.allocation));
    const DevicePtr next = cuda.allocate(kSize + kPage);
    CU_MUST(cuda, kSuccess, cuda.cuMemsetD8_v2(next, 0, kSize));
    Buffer out = pair.a.buffer(kSize);
    Buffer back = pair.a.buffer(kSize);
    out.fill(1);
    BL_MUST_OK(post(pair.a.qp, write_work(out.all(), gpu.all(), 1)));
    must_complete(pair.a.send_cq.get(), 1);
    BL_MUST_OK(post(pair.a.qp, read_work(back.all(), gpu.all(), 2)));
    must_complete(pair.a.send_cq.get(), 2);
    BL_MUST(back.has(1));
    Bytes fresh(kSize, 1);
    BL_MUST_OK(cuda.softgpu_read(pointer(next), fresh.data(), kSize));
    BL_MUST(is_zero(fresh));
    CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(next));
    CU_MUST(cuda, kSuccess, cuda.cuMemGetInfo_v2(&after, nullptr));
    BL_MUST(after < before);
    gpu.mr.reset();
    BL_MUST(cuda.softgpu_pinned() == 0 && cuda.softgpu_open_handles() == 0);
    CU_MUST(cuda, kSuccess, cuda.cuMemGetInfo_v2(&after, nullptr));
    BL_MUST(after == before);
  });
}

TEST_CASE("nic: registering and deregistering leave nothing behind", "[nic]") {
  const Way way = any_way();
  INFO(way);
  in_process([&](Cuda& cuda) {
    cuda.start();
    const TestFabric fabric;
    const Nic nic("softnic0");
    const UniqueFd before(dup(0));
    for (int i = 0; i < 500; ++i) {
      const GpuMemory gpu(cuda, nic.pd.get(), way, 8, kPage);
      CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(gpu.allocation));
    }
    BL_MUST(cuda.softgpu_pinned() == 0 && cuda.softgpu_open_handles() == 0);
    const UniqueFd after(dup(0));
    BL_MUST(after.get() == before.get() + 1);
  });
}

TEST_CASE("nic: the processor cannot access GPU memory that the NIC can", "[nic]") {
  const Way way = any_way();
  INFO(way);
  const TestFabric fabric;  // held by this process, so that it outlives the child
  const CudaEnding ending = end_of_process([&](Cuda& cuda) {
    cuda.start();
    const Nic nic("softnic0");
    const GpuMemory gpu(cuda, nic.pd.get(), way);
    *static_cast<volatile std::uint8_t*>(pointer(gpu.start)) = 1;
  });
  CHECK(ending.signal == SIGSEGV);
}

TEST_CASE("nic: deferred writes are visible after a READ or a flush by the driver, and not before",
          "[nic]") {
  const Way way = any_way();
  const auto opcode = GENERATE(IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM);
  const std::size_t offset = GENERATE(std::size_t{0}, kPage + 8);
  const bool driver_flushes = GENERATE(false, true);
  INFO(way << ", opcode " << opcode << ", offset " << offset << (driver_flushes ? ", driver" : ""));
  in_process([&](Cuda& cuda) {
    cuda.start();
    const TestFabric fabric(hiding());
    Endpoint a("softnic0");
    Endpoint b("softnic1");
    connect_both(a.qp, b.qp);
    Flusher flusher(b);
    Buffer host = a.buffer(kSize);
    const GpuMemory gpu(cuda, b.pd.get(), way, offset);
    gpu.put(0, pattern(kSize, 1));
    for (std::uint32_t round = 2; round < 6; ++round) {
      host.fill(round);
      SendWork work = write_imm_work(host.all(), gpu.all(), round, round);
      work.opcode = opcode;
      const bool is_received = opcode != IBV_WR_RDMA_WRITE;
      if (is_received) BL_MUST_OK(post(b.qp, recv_work(gpu.all(), round)));
      BL_MUST_OK(post(a.qp, work));
      must_complete(a.send_cq.get(), round);
      if (is_received) must_complete(b.recv_cq.get(), round);
      BL_MUST(gpu.has(round - 1));
      if (driver_flushes) {
        CU_MUST(cuda, kSuccess, cuda.cuFlushGPUDirectRDMAWrites(0, softnic::gpu::kFlushToOwner));
      } else {
        flusher.flush(gpu.part(0, 1));
      }
      BL_MUST(gpu.has(round));
    }
  });
}

TEST_CASE("nic: deferred writes are applied at the deregistration", "[nic]") {
  const Way way = any_way();
  INFO(way);
  in_process([&](Cuda& cuda) {
    cuda.start();
    const TestFabric fabric(hiding());
    Endpoint a("softnic0");
    Endpoint b("softnic1");
    connect_both(a.qp, b.qp);
    Buffer host = a.buffer(kSize);
    GpuMemory gpu(cuda, b.pd.get(), way);
    host.fill(1);
    BL_MUST_OK(post(a.qp, write_work(host.all(), gpu.all(), 1)));
    must_complete(a.send_cq.get(), 1);
    BL_MUST(is_zero(gpu.look()));
    gpu.mr.reset();
    BL_MUST(gpu.has(1));
    BL_MUST(cuda.softgpu_pinned() == 0);
  });
}
