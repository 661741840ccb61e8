// SPDX-License-Identifier: Apache-2.0
#include "plugin/gdr/gpu_direct.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/clock.h"
#include "common/check/assert.h"

namespace beeline::gdr {
namespace {

constexpr std::int64_t kProofLimit = 2 * kNsPerSec;

std::optional<topology::Distance> distance_of(const topology::Graph* machine, const Device& device,
                                              const gpu::Gpu& gpu) {
  const auto address = topology::parse_pci_address(gpu.pci);
  if (machine == nullptr || !address) return std::nullopt;
  const auto nic = find_os_device(*machine, topology::OsKind::kRdma, device.ibdev);
  const auto node = find_pci(*machine, *address);
  if (nic == topology::kNoNode || node == topology::kNoNode) return std::nullopt;
  return topology::Distances(*machine).between(node, nic);
}

}  // namespace

GpuDirect::GpuDirect(const Options& options, std::size_t devices)
    : options_(options), states_(new State[devices]) {
  load_driver();
}

void GpuDirect::load_driver() {
  auto cuda = gpu::load_cuda(options_.cuda_lib);
  if (!cuda) {
    const auto& why = cuda.error();
    if (!why.absent) return find_broken_driver(why.why);
    return find({.id = "no-gpu", .fact = why.why + ": host memory only"});
  }
  for (int i = 0; i < cuda->gpus; ++i) {
    gpu::Ordinal ordinal = i;
    (void)cuda->device_get(&ordinal, i);
    auto gpu = gpu::read_gpu(*cuda, ordinal);
    if (!gpu) return find_broken_driver(gpu.error().text);
    gpus_.push_back(*std::move(gpu));
  }
  is_probed_.resize(gpus_.size());
  cuda_ = *std::move(cuda);
}

void GpuDirect::find_broken_driver(const std::string& why) {
  find({.id = "cuda-broken",
        .severity = Severity::kWarning,
        .fact = "GPU memory is not used: " + why});
}

std::vector<Finding> GpuDirect::probe(std::span<const Device> devices, const CacheOf& cache_of,
                                      const topology::Graph* machine) {
  if (cuda_) probe_new_gpus(devices, cache_of, machine);
  return std::exchange(findings_, {});
}

void GpuDirect::probe_new_gpus(std::span<const Device> devices, const CacheOf& cache_of,
                               const topology::Graph* machine) {
  const std::vector<gpu::Ordinal> used = gpu::gpus_in_use(*cuda_);
  if (used.empty()) return probe_without_gpu(devices);
  has_probed_ = true;
  for (const gpu::Gpu& gpu : gpus_) {
    const auto index = static_cast<std::size_t>(&gpu - gpus_.data());
    if (is_probed_[index] || std::ranges::find(used, gpu.ordinal) == used.end()) continue;
    is_probed_[index] = true;
    probe_gpu(gpu, devices, cache_of, machine);
  }
}

// For a process that has not chosen its GPU yet: the offer is what the drivers say, until a GPU is
// in use.
void GpuDirect::probe_without_gpu(std::span<const Device> devices) {
  if (std::exchange(has_probed_, true)) return;
  BL_ASSERT(!gpus_.empty(), "a driver without GPUs is not used");
  std::vector<Answered> answers;
  for (const Device& device : devices) {
    answers.push_back({&device, ask(device, gpus_.front())});
    assume(state_of(device), answers.back().ways);
  }
  find(finding_without_gpu(answers, level_for(gpus_.front())));
}

// The GPU cannot be tested, for example because another process has used up its memory. That says
// nothing about the NICs with other GPUs: if one was tested, its result stands.
void GpuDirect::skip_gpu(const gpu::Gpu& gpu, std::span<const Device> devices,
                         const std::string& why) {
  const std::string name = label(gpu);
  find({.id = "gpudirect-gpu-not-tried",
        .severity = Severity::kWarning,
        .subject = name,
        .fact = "GPUDirect " + name + ": cannot be tested with any NIC: " + why,
        .why = "NCCL is offered what works with the other GPUs in use, or what the drivers "
               "say"});
  for (const Device& device : devices) {
    State& state = state_of(device);
    if (!state.is_tried) assume(state, ask(device, gpu));
  }
}

Ways GpuDirect::ask(const Device& device, const gpu::Gpu& gpu) const {
  Ways ways = ask_without_memory(device, gpu, options_.sysfs_root);
  if (!options_.dmabuf) ways.dmabuf = {.works = false, .why_not = kDmabufsAreOff};
  return ways;
}

void GpuDirect::assume(State& state, const Ways& ways) noexcept {
  state.dmabuf = ways.dmabuf.works;
  state.peermem = ways.peermem.works;
  state.pointer = ways.any();
}

void GpuDirect::probe_gpu(const gpu::Gpu& gpu, std::span<const Device> devices,
                          const CacheOf& cache_of, const topology::Graph* machine) {
  std::vector<Tried> tried;
  for (const Device& device : devices) {
    tried.push_back({&device, {}, distance_of(machine, device, gpu)});
  }
  if (!gpu.gdr) {
    for (Tried& one : tried) {
      one.proof.failure = "the GPU or its driver does not support GPUDirect RDMA";
    }
    return record_results(gpu, tried);
  }
  auto ground = GpuScratch::make(*cuda_, gpu);
  if (!ground) return skip_gpu(gpu, devices, ground.error().text);
  for (Tried& one : tried) {
    const bool is_far = one.distance && *one.distance > level_for(gpu);
    one.proof = probe_pair(*one.device, gpu, ground->memory, cache_of, options_.proof && !is_far);
  }
  record_results(gpu, tried);
}

Proof GpuDirect::probe_pair(const Device& device, const gpu::Gpu& gpu, gpu::Memory& memory,
                            const CacheOf& cache_of, bool transfer) {
  const auto cache = cache_of(device);
  if (!cache) return {.failure = describe(cache.error())};
  const FlushNeed flush = flush_need(&gpu);
  return prove(device, **cache, *cuda_, gpu, memory,
               {.dmabuf = options_.dmabuf,
                .transfer = transfer,
                .needs_reads = flush.any && !flush.by_host,
                .limit_ns = kProofLimit,
                .gid = options_.gid,
                .pkey = options_.pkey});
}

void GpuDirect::record_results(const gpu::Gpu& gpu, std::span<const Tried> all) {
  const GpuReport report = {.gpu = gpu, .cuda = *cuda_, .level = level_for(gpu), .tried = all};
  for (Finding& finding : findings_of(report, options_.sysfs_root)) find(std::move(finding));
  for (const Tried& tried : all) record_device(*tried.device, tried.proof);
}

void GpuDirect::record_device(const Device& device, const Proof& proof) {
  const bool works = proof.failure.empty();
  State& state = state_of(device);
  const bool is_first = !state.is_tried;
  const bool was_offered = state.pointer;
  combine(state, works ? proof.ways : Ways{});
  if (!is_first && was_offered != works && !std::exchange(state.is_mixed, true)) {
    find({.id = "gpudirect-not-with-all",
          .severity = Severity::kWarning,
          .subject = device.ibdev,
          .fact = "GPUDirect " + device.ibdev + ": off for every GPU",
          .why = "it does not work with every GPU in use, and NCCL asks about all of them at once",
          .fix = "let this process use only GPUs that it works with (CUDA_VISIBLE_DEVICES)"});
  }
}

// NCCL does not ask for a certain GPU, so it is offered what works with all of them. A pointer can
// be registered by either way.
void GpuDirect::combine(State& state, const Ways& ways) noexcept {
  const bool is_first = !state.is_tried;
  state.dmabuf = ways.dmabuf.works && (is_first || state.dmabuf);
  state.peermem = ways.peermem.works && (is_first || state.peermem);
  state.pointer = ways.any() && (is_first || state.pointer);
  state.is_tried = true;  // last: another thread may call has_failed()
}

Offer GpuDirect::offer(const Device& device) const noexcept {
  const State& state = state_of(device);
  Offer offer = {.dmabuf = state.dmabuf, .pointer = state.pointer, .force_flush = false};
  offer.force_flush = offer.pointer && std::ranges::any_of(gpus_, [&](const gpu::Gpu& gpu) {
                        return flush_need(&gpu).is_forced;
                      });
  return offer;
}

Offer GpuDirect::offer(RailDevices devices) const noexcept {
  Offer all;
  for (const Device* const device : devices) {
    const Offer one = offer(*device);
    all.dmabuf |= one.dmabuf;
    all.pointer |= one.pointer;
    all.force_flush |= one.force_flush;
  }
  return all;
}

bool GpuDirect::has_failed(const Device& device) const noexcept {
  const State& state = state_of(device);
  return state.is_tried && !state.pointer;
}

const gpu::Gpu* GpuDirect::owner_of(const void* pointer) const noexcept {
  if (!cuda_) return nullptr;
  const gpu::Ordinal ordinal = gpu::owner_of(*cuda_, pointer);
  const auto found = std::ranges::find(gpus_, ordinal, &gpu::Gpu::ordinal);
  return found != gpus_.end() ? &*found : nullptr;
}

std::uint64_t GpuDirect::buffer_id_of(const void* pointer) const noexcept {
  return cuda_ ? gpu::buffer_id_of(*cuda_, pointer) : 0;
}

Means GpuDirect::means(const Device& device, const gpu::Gpu* owner) const noexcept {
  const State& state = state_of(device);
  return {.cuda = cuda_ ? &*cuda_ : nullptr,
          .gpu = owner,
          .dmabuf = options_.dmabuf,
          .pointer_first = state.peermem && !state.dmabuf};
}

// A coherent GPU and its NICs are below different host bridges, and NCCL uses them together by
// default.
topology::Distance GpuDirect::level_for(const gpu::Gpu& gpu) const noexcept {
  const bool is_default = options_.level == topology::Distance::kPxb;
  return gpu.coherent && is_default ? topology::Distance::kNode : options_.level;
}

std::uint64_t GpuDirect::bit_of(const gpu::Gpu& gpu) const noexcept {
  const auto index = static_cast<std::size_t>(&gpu - gpus_.data());
  return index < 64 ? std::uint64_t{1} << index : 0;
}

FlushNeed GpuDirect::flush_need(const gpu::Gpu* owner) const noexcept {
  if (options_.never_flush) return {};
  const bool ordered = owner != nullptr && owner->has_ordered_writes();
  FlushNeed need;
  need.is_forced = !ordered || options_.always_flush;
  // If NCCL calls iflush by itself, the plugin flushes. For a coherent GPU, CUDA's answer is valid
  // for one of its two paths, and NCCL flushes by itself if data may come by the other one.
  need.any = need.is_forced || owner->coherent || owner->is_flushed_by_nccl();
  need.in_test = !ordered && owner != nullptr && !owner->is_flushed_by_nccl();
  need.owner = owner != nullptr ? bit_of(*owner) : 0;
  need.by_host = owner != nullptr && owner->host_can_flush;
  return need;
}

bool GpuDirect::flush_by_host(std::uint64_t owners) const noexcept {
  if (!cuda_ || cuda_->flush_writes == nullptr) return false;
  if (owners == 0) return flush_current();
  for (; owners != 0; owners &= owners - 1) {
    if (!flush_one(gpus_[static_cast<std::size_t>(std::countr_zero(owners))])) return false;
  }
  return true;
}

bool GpuDirect::flush_one(const gpu::Gpu& gpu) const noexcept {
  gpu::Ordinal current = -1;
  const bool has_one = cuda_->context_get_device(&current) == gpu::CuResult::kSuccess;
  if (has_one && current == gpu.ordinal) return flush_current();
  const auto scope = gpu::ContextScope::enter(*cuda_, gpu.ordinal);
  return scope && flush_current();
}

bool GpuDirect::flush_current() const noexcept {
  constexpr int kCurrentContext = 0;
  return cuda_->flush_writes(kCurrentContext, cuda_abi::kFlushToOwner) == gpu::CuResult::kSuccess;
}

}  // namespace beeline::gdr
