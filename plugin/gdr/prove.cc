// SPDX-License-Identifier: Apache-2.0
#include "plugin/gdr/prove.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/clock.h"
#include "plugin/memory/control_block.h"
#include "plugin/verbs/text.h"

namespace beeline::gdr {
namespace {

constexpr std::uint32_t kCompared = 64 << 10;

// Fills it with data that differs at each position and for each seed.
void fill(std::byte* to, std::uint32_t bytes, std::uint32_t seed) {
  for (std::uint32_t i = 0; i < bytes; i += 4) {
    const std::uint32_t word = (i + seed) * 2654435761U;
    std::memcpy(to + i, &word, sizeof word);
  }
}

// The test of one pair: a loopback connection of the NIC, with host memory at one end and the GPU's
// memory at the other.
class Trial {
 public:
  static Outcome<Trial> prepare(const Device& device, gpu::Memory& memory, const MrRef& region,
                                const ProofPlan& plan);

  Outcome<void> write_to_host();
  Outcome<void> check_host() const;
  Outcome<void> check_read();
  Outcome<void> check_write();

 private:
  // The remote end of a transfer.
  struct Place {
    const void* data;
    std::uint32_t rkey;
  };

  Trial(gpu::Memory& memory, const MrRef& region, std::int64_t deadline)
      : memory_(&memory), rkey_(region.rkey()), deadline_(deadline) {}

  Outcome<void> transfer(ibv_wr_opcode opcode, std::size_t host_at, std::uint32_t bytes) {
    return transfer_with({memory_->data(), rkey_}, opcode, host_at, bytes);
  }
  Outcome<void> transfer_with(const Place& place, ibv_wr_opcode opcode, std::size_t host_at,
                              std::uint32_t bytes);
  Outcome<void> wait();
  std::byte* host(std::size_t at = 0) const { return host_.at<std::byte>(at); }

  gpu::Memory* memory_;
  std::uint32_t rkey_;
  std::int64_t deadline_;
  verbs::Cq cq_;
  ControlBlock host_;
  std::optional<Loopback> loopback_;
};

std::string text_of(const char* doing, const Problem& problem) {
  return std::string(doing) + ": " + problem.text;
}

Outcome<Trial> Trial::prepare(const Device& device, gpu::Memory& memory, const MrRef& region,
                              const ProofPlan& plan) {
  Trial trial(memory, region, now_ns() + plan.limit_ns);
  auto pd = device.context->pd();
  if (!pd) return fail(text_of("a protection domain", pd.error()));
  auto cq = verbs::create_cq(device.api(), device.context->raw(), 4);
  if (!cq) return fail(text_of("a completion queue", cq.error()));
  trial.cq_ = *std::move(cq);
  auto host = ControlBlock::create(std::size_t{2} * kCompared);  // data sent and data received
  if (!host) return fail(text_of("host memory", host.error()));
  trial.host_ = *std::move(host);
  if (auto attached = trial.host_.attach(device.api(), *pd); !attached) {
    return fail(text_of("host memory", attached.error()));
  }
  auto way = Loopback::make(
      device, {.pd = *pd, .cq = trial.cq_.get(), .depth = 2, .gid = plan.gid, .pkey = plan.pkey});
  if (!way) return fail(text_of("a loopback connection", way.error()));
  trial.loopback_ = *std::move(way);
  return trial;
}

Outcome<void> Trial::wait() {
  ibv_wc completion = {};
  while (true) {
    const int found = ibv_poll_cq(cq_.get(), 1, &completion);
    if (found < 0) return fail(std::string("the completion queue cannot be polled"));
    if (found > 0) break;
    if (now_ns() > deadline_) return fail(std::string("the NIC's transfer does not complete"));
  }
  if (completion.status == IBV_WC_SUCCESS) return {};
  return fail(std::string("the NIC's transfer failed: ") +
              verbs::wc_status_text(completion.status));
}

Outcome<void> Trial::transfer_with(const Place& place, ibv_wr_opcode opcode, std::size_t host_at,
                                   std::uint32_t bytes) {
  const int rc = loopback_->post({.opcode = opcode,
                                  .local = host(host_at),
                                  .lkey = host_.lkey(0),
                                  .remote = reinterpret_cast<std::uint64_t>(place.data),
                                  .rkey = place.rkey,
                                  .bytes = bytes});
  if (rc != 0) return fail(std::string("the NIC refuses a transfer: ") + std::strerror(rc));
  return wait();
}

// Transfers data from host memory to host memory, to see whether the loopback connection works at
// all.
Outcome<void> Trial::write_to_host() {
  fill(host(), kCompared, 3);
  return transfer_with({host(kCompared), host_.rkey(0)}, IBV_WR_RDMA_WRITE, 0, kCompared);
}

Outcome<void> Trial::check_host() const {
  if (std::memcmp(host(), host(kCompared), kCompared) == 0) return {};
  return fail(std::string("what the NIC writes to host memory does not arrive there"));
}

// The NIC must read what CUDA has written.
Outcome<void> Trial::check_read() {
  fill(host(), kCompared, 1);
  BL_TRY(memory_->write(host(), kCompared));
  BL_TRY(transfer(IBV_WR_RDMA_READ, kCompared, kCompared));
  if (std::memcmp(host(), host(kCompared), kCompared) == 0) return {};
  return fail(std::string("what the NIC reads from the GPU is not what is there"));
}

// CUDA must read what the NIC has written, after a READ has flushed it.
Outcome<void> Trial::check_write() {
  fill(host(), kCompared, 2);
  BL_TRY(transfer(IBV_WR_RDMA_WRITE, 0, kCompared));
  BL_TRY(transfer(IBV_WR_RDMA_READ, kCompared, 1));
  BL_TRY(memory_->read(host(kCompared), kCompared));
  if (std::memcmp(host(), host(kCompared), kCompared) == 0) return {};
  return fail(std::string("what the NIC writes to the GPU does not arrive there"));
}

Outcome<void> move_data(Trial& trial, Proof& proof) {
  BL_TRY(trial.check_host());
  proof.is_blocked = true;
  BL_TRY(trial.check_read());
  BL_TRY(trial.check_write());
  proof.is_blocked = false;
  proof.transferred = true;
  return {};
}

// Tries both ways, and returns the registration by the better one.
MrRef try_ways(MrCache& cache, const GpuRange& range, const Means& means, Ways& ways) {
  auto pointer = by_pointer(cache, range);
  ways.peermem = pointer ? Attempt{.works = true, .why_not = {}} : pointer.error();
  auto dmabuf = by_dmabuf(cache, range, means);
  ways.dmabuf = dmabuf ? Attempt{.works = true, .why_not = {}} : dmabuf.error();
  if (dmabuf) return *std::move(dmabuf);
  return pointer ? *std::move(pointer) : MrRef();
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// If the NIC has no loopback connection, the GPU cannot be tested. Only flushes need that
// connection.
Proof without_loopback(Proof proof, const std::string& why, const ProofPlan& plan) {
  if (plan.needs_reads) {
    proof.failure = why + ", and CUDA cannot flush what the NIC has written";
  } else {
    proof.why_unproven = why;
  }
  return proof;
}

}  // namespace

Outcome<GpuScratch> GpuScratch::make(const gpu::Cuda& cuda, const gpu::Gpu& gpu) {
  auto scope = BL_TRY(gpu::ContextScope::enter(cuda, gpu.ordinal));
  auto memory = BL_TRY(gpu::Memory::allocate(cuda, kCompared));
  return GpuScratch{.scope = std::move(scope), .memory = std::move(memory)};
}

Proof prove(const Device& device, MrCache& cache, const gpu::Cuda& cuda, const gpu::Gpu& gpu,
            gpu::Memory& memory, const ProofPlan& plan) {
  Proof proof;
  const auto failed = [&](std::string why) {
    proof.failure = std::move(why);
    return proof;
  };
  // The driver places small allocations within pages, and whole pages are registered: a page more
  // than the memory has, as with NCCL's own buffers.
  const GpuRange range = {.address = memory.data(), .length = memory.size()};
  const MrRef region =
      try_ways(cache, range, {.cuda = &cuda, .gpu = &gpu, .dmabuf = plan.dmabuf}, proof.ways);
  if (!proof.ways.any()) {
    return failed("dma-buf: " + proof.ways.dmabuf.why_not +
                  "; peer memory: " + proof.ways.peermem.why_not);
  }
  if (device.transport == Transport::kIwarp) {
    return without_loopback(std::move(proof), "an iWARP port has no loopback connection", plan);
  }
  if (!plan.transfer) return proof;
  auto trial = Trial::prepare(device, memory, region, plan);
  if (!trial) return without_loopback(std::move(proof), trial.error().text, plan);
  if (const auto reached = trial->write_to_host(); !reached) {
    return without_loopback(std::move(proof),
                            "the NIC's loopback connection does not work: " + reached.error().text,
                            plan);
  }
  if (auto moved = move_data(*trial, proof); !moved) return failed(moved.error().text);
  return proof;
}

bool is_peer_memory_loaded(const std::string& sysfs_root) {
  return exists(sysfs_root + "/module/nvidia_peermem") ||
         exists(sysfs_root + "/kernel/mm/memory_peers/nv_mem") ||
         exists(sysfs_root + "/kernel/mm/memory_peers/nv_mem_nc");
}

// If the driver supports dma-bufs, it checks the file descriptor first, and returns EBADF for -1.
Ways ask_without_memory(const Device& device, const gpu::Gpu& gpu, const std::string& sysfs_root) {
  Ways ways;
  if (!gpu.dmabuf) {
    ways.dmabuf.why_not = "the driver cannot export this GPU's memory as dma-bufs";
  } else if (auto pd = device.context->pd(); pd) {
    const auto made = verbs::reg_dmabuf_mr(device.api(), *pd, -1, 0, 0, 4096,
                                           IBV_ACCESS_LOCAL_WRITE, verbs::Ordering::kStrict);
    ways.dmabuf.works = !made && made.error().sys_errno == EBADF;
    if (!made) ways.dmabuf.sys_errno = made.error().sys_errno;
    if (!ways.dmabuf.works) ways.dmabuf.why_not = "the NIC's driver does not support them";
  }
  ways.peermem.works = gpu.gdr && is_peer_memory_loaded(sysfs_root);
  if (!ways.peermem.works) ways.peermem.why_not = "nvidia_peermem is not loaded";
  return ways;
}

}  // namespace beeline::gdr
