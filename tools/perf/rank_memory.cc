// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/rank_memory.h"

#include <fmt/format.h>

#include <cstdlib>

namespace beeline::perf {
namespace {

// kMixed tests both ways of registration in one run, each on half of the ranks.
BufferKind kind_of(MemoryChoice choice, int rank) {
  switch (choice) {
    case MemoryChoice::kHost: return BufferKind::kHost;
    case MemoryChoice::kPeermem: return BufferKind::kPeermem;
    case MemoryChoice::kDmabuf: return BufferKind::kDmabuf;
    case MemoryChoice::kMixed: return rank % 2 == 0 ? BufferKind::kDmabuf : BufferKind::kPeermem;
  }
  return BufferKind::kHost;
}

Outcome<bool> check_gpu(const gpu::Gpu& gpu, BufferKind kind) {
  if (!gpu.gdr) {
    return fail(fmt::format(
        "GPU {} ({}) does not support GPUDirect RDMA, so NICs cannot access its memory: "
        "choose --memory host",
        gpu.ordinal, gpu.name));
  }
  if (kind == BufferKind::kDmabuf && !gpu.dmabuf) {
    return fail(
        fmt::format("GPU {} ({}): the driver cannot export its memory as dma-bufs. This needs CUDA "
                    "11.7, Linux 5.12 "
                    "and the open kernel modules of NVIDIA's driver; or choose --memory peermem",
                    gpu.ordinal, gpu.name));
  }
  return true;
}

int pointer_bit(BufferKind kind) {
  switch (kind) {
    case BufferKind::kHost: return NCCL_PTR_HOST;
    case BufferKind::kPeermem: return NCCL_PTR_CUDA;
    case BufferKind::kDmabuf: return NCCL_PTR_DMABUF;
  }
  return NCCL_PTR_HOST;
}

const char* what_it_takes(BufferKind kind) {
  switch (kind) {
    case BufferKind::kHost: return "choose --memory peermem or dmabuf";
    case BufferKind::kPeermem:
      return "load the peer-memory module (modprobe nvidia-peermem), or choose --memory dmabuf";
    case BufferKind::kDmabuf:
      return "this needs a NIC whose driver imports dma-bufs, Linux 5.12 and rdma-core 34; or "
             "choose "
             "--memory peermem";
  }
  return "";
}

// Variables of NCCL have numbers as values.
bool force_flush() {
  const char* const text = std::getenv("NCCL_NET_FORCE_FLUSH");
  return text != nullptr && std::strtoll(text, nullptr, 0) != 0;
}

}  // namespace

const char* to_string(BufferKind kind) {
  switch (kind) {
    case BufferKind::kHost: return "host";
    case BufferKind::kPeermem: return "peermem";
    case BufferKind::kDmabuf: return "dmabuf";
  }
  return "";
}

Outcome<RankMemory> RankMemory::open(MemoryChoice choice, int rank) {
  const BufferKind kind = kind_of(choice, rank);
  if (kind == BufferKind::kHost) return RankMemory(kind, nullptr);
  std::unique_ptr<RankGpu> gpu = BL_TRY(RankGpu::open(rank));
  BL_TRY(check_gpu(gpu->about(), kind));
  return RankMemory(kind, std::move(gpu));
}

Outcome<bool> RankMemory::check_support(const Net& net, const Device& device) const {
  if ((device.props.ptrSupport & pointer_bit(kind_)) == 0) {
    return fail(fmt::format(
        "device {} supports only {} memory, not {}: {}. --log INFO may show the plugin's reason",
        device.name, pointer_kinds(device.props.ptrSupport), to_string(kind_),
        what_it_takes(kind_)));
  }
  if (kind_ == BufferKind::kDmabuf && net.calls.regMrDmaBuf == nullptr) {
    return fail(fmt::format(
        "device {} claims to support dma-bufs, but {} has no regMrDmaBuf. This is an error of the "
        "plugin; choose --memory peermem",
        device.name, net.calls.name));
  }
  return true;
}

bool RankMemory::flushes(FlushChoice choice, const Device& device) const {
  switch (choice) {
    case FlushChoice::kAlways: return true;
    case FlushChoice::kNever: return false;
    case FlushChoice::kAuto: break;
  }
  if (gpu_ == nullptr) return false;
  return gpu_->about().is_flushed_by_nccl() || device.props.forceFlush == 1 || force_flush();
}

}  // namespace beeline::perf
