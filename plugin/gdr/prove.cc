// SPDX-License-Identifier: Apache-2.0
//
// Write, read, compare.
#include "plugin/gdr/prove.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "common/base/clock.h"
#include "plugin/gdr/fix.h"
#include "plugin/memory/control_block.h"
#include "plugin/verbs/text.h"

namespace beeline::gdr {
namespace {

constexpr std::uint32_t kPiece = 1 << 20;
constexpr std::uint32_t kCompared = 64 << 10;

// Bytes that no other place has.
void fill(std::byte* to, std::uint32_t bytes, std::uint32_t seed) {
  for (std::uint32_t i = 0; i < bytes; i += 4) {
    const std::uint32_t word = (i + seed) * 2654435761U;
    std::memcpy(to + i, &word, sizeof word);
  }
}

// A pair while it is tried: a way through the NIC, host memory at its one end and the GPU's at the
// other.
class Trial {
 public:
  static Outcome<Trial> prepare(const Device& device, gpu::Memory& memory, const MrRef& region,
                                const ProofPlan& plan);

  Outcome<void> reach_itself();
  Outcome<void> must_have_reached_itself() const;
  Outcome<void> must_read();
  Outcome<void> must_write();

 private:
  // The other end of a transfer.
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
  std::optional<Loopback> way_;
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
  auto host = ControlBlock::create(kPiece);
  if (!host) return fail(text_of("host memory", host.error()));
  trial.host_ = *std::move(host);
  if (auto attached = trial.host_.attach(device.api(), *pd); !attached) {
    return fail(text_of("host memory", attached.error()));
  }
  auto way = Loopback::make(device, {.pd = *pd,
                                     .cq = trial.cq_.get(),
                                     .depth = 2,
                                     .gid = plan.gid,
                                     .pkey_index = plan.pkey_index});
  if (!way) return fail(text_of("a queue pair to itself", way.error()));
  trial.way_ = *std::move(way);
  return trial;
}

Outcome<void> Trial::wait() {
  ibv_wc completion = {};
  while (true) {
    const int found = ibv_poll_cq(cq_.get(), 1, &completion);
    if (found < 0) return fail(std::string("the completion queue cannot be read"));
    if (found > 0) break;
    if (now_ns() > deadline_) return fail(std::string("the NIC's transfer does not end"));
  }
  if (completion.status == IBV_WC_SUCCESS) return {};
  return fail(std::string("the NIC's transfer failed: ") +
              verbs::wc_status_text(completion.status));
}

Outcome<void> Trial::transfer_with(const Place& place, ibv_wr_opcode opcode, std::size_t host_at,
                                   std::uint32_t bytes) {
  const int rc = way_->post({.opcode = opcode,
                             .local = host(host_at),
                             .lkey = host_.lkey(0),
                             .remote = reinterpret_cast<std::uint64_t>(place.data),
                             .rkey = place.rkey,
                             .bytes = bytes});
  if (rc != 0) return fail(std::string("the NIC takes no transfer: ") + std::strerror(rc));
  return wait();
}

// From the host to the host: whether a transfer through this way comes to its end at all.
Outcome<void> Trial::reach_itself() {
  fill(host(), kCompared, 3);
  return transfer_with({host(kCompared), host_.rkey(0)}, IBV_WR_RDMA_WRITE, 0, kCompared);
}

Outcome<void> Trial::must_have_reached_itself() const {
  if (std::memcmp(host(), host(kCompared), kCompared) == 0) return {};
  return fail(std::string("what the NIC writes to the host's own memory does not arrive there"));
}

// What CUDA has put there, the NIC finds.
Outcome<void> Trial::must_read() {
  fill(host(), kCompared, 1);
  BL_TRY(memory_->write(host(), kCompared));
  BL_TRY(transfer(IBV_WR_RDMA_READ, kCompared, kCompared));
  if (std::memcmp(host(), host(kCompared), kCompared) == 0) return {};
  return fail(std::string("what the NIC reads from the GPU is not what is there"));
}

// What the NIC has written, CUDA finds, once a READ has pushed it there.
Outcome<void> Trial::must_write() {
  fill(host(), kCompared, 2);
  BL_TRY(transfer(IBV_WR_RDMA_WRITE, 0, kCompared));
  BL_TRY(transfer(IBV_WR_RDMA_READ, kCompared, 1));
  BL_TRY(memory_->read(host(kCompared), kCompared));
  if (std::memcmp(host(), host(kCompared), kCompared) == 0) return {};
  return fail(std::string("what the NIC writes to the GPU does not arrive there"));
}

Outcome<void> move_data(Trial& trial, Proof& proof) {
  BL_TRY(trial.must_have_reached_itself());
  proof.is_blocked = true;
  BL_TRY(trial.must_read());
  BL_TRY(trial.must_write());
  proof.is_blocked = false;
  proof.transferred = true;
  return {};
}

// Both ways, and the registration by the better one.
MrRef try_ways(MrCache& cache, const GpuRange& range, const Means& means, Ways& ways) {
  auto pointer = by_pointer(cache, range);
  ways.peermem = pointer ? Attempt{.works = true, .why_not = {}} : pointer.error();
  auto dmabuf = by_dmabuf(cache, range, means);
  ways.dmabuf = dmabuf ? Attempt{.works = true, .why_not = {}} : dmabuf.error();
  if (dmabuf) return *std::move(dmabuf);
  return pointer ? *std::move(pointer) : MrRef();
}

// A NIC that has no way to itself says nothing about the GPU. Only flushes would need that way.
Proof without_way(Proof proof, const std::string& why, const ProofPlan& plan) {
  if (plan.needs_reads) {
    proof.failure = why + ", and CUDA has no way to flush what the NIC has written";
  } else {
    proof.why_unproven = why;
  }
  return proof;
}

}  // namespace

Outcome<Ground> Ground::make(const gpu::Cuda& cuda, const gpu::Gpu& gpu) {
  auto scope = BL_TRY(gpu::ContextScope::enter(cuda, gpu.ordinal));
  auto memory = BL_TRY(gpu::Memory::allocate(cuda, kPiece));
  return Ground{.scope = std::move(scope), .memory = std::move(memory)};
}

Proof prove(const Device& device, MrCache& cache, const gpu::Cuda& cuda, const gpu::Gpu& gpu,
            gpu::Memory& memory, const ProofPlan& plan) {
  Proof proof;
  const auto failed = [&](std::string why) {
    proof.failure = std::move(why);
    return proof;
  };
  const GpuRange range = {.address = memory.data(), .length = memory.size()};
  const MrRef region =
      try_ways(cache, range, {.cuda = &cuda, .gpu = &gpu, .dmabuf = plan.dmabuf}, proof.ways);
  if (!proof.ways.any()) {
    return failed("dma-buf: " + proof.ways.dmabuf.why_not +
                  "; peer memory: " + proof.ways.peermem.why_not);
  }
  if (device.transport == Transport::kIwarp) {
    return without_way(std::move(proof), "an iWARP port has no way to itself", plan);
  }
  if (!plan.transfer) return proof;
  auto trial = Trial::prepare(device, memory, region, plan);
  if (!trial) return without_way(std::move(proof), trial.error().text, plan);
  if (const auto reached = trial->reach_itself(); !reached) {
    return without_way(std::move(proof), "the NIC does not reach itself: " + reached.error().text,
                       plan);
  }
  if (auto moved = move_data(*trial, proof); !moved) return failed(moved.error().text);
  return proof;
}

// A device whose driver takes dma-bufs looks at the descriptor first, and says that it is none.
Ways ask_without_memory(const Device& device, const gpu::Gpu& gpu, const std::string& sysfs_root) {
  Ways ways;
  if (!gpu.dmabuf) {
    ways.dmabuf.why_not = "the driver makes no dma-bufs of this GPU's memory";
  } else if (auto pd = device.context->pd(); pd) {
    const auto made = verbs::reg_dmabuf_mr(device.api(), *pd, -1, 0, 0, 4096,
                                           IBV_ACCESS_LOCAL_WRITE, verbs::Ordering::kStrict);
    ways.dmabuf.works = !made && made.error().sys_errno == EBADF;
    if (!made) ways.dmabuf.sys_errno = made.error().sys_errno;
    if (!ways.dmabuf.works) ways.dmabuf.why_not = "the NIC's driver takes none";
  }
  ways.peermem.works = gpu.gdr && peer_memory_is_loaded(sysfs_root);
  if (!ways.peermem.works) ways.peermem.why_not = "nvidia_peermem is not loaded";
  return ways;
}

}  // namespace beeline::gdr
