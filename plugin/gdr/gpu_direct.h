// SPDX-License-Identifier: Apache-2.0
//
// GPUDirect on this host: tests which NICs can access which GPU's memory, and says what NCCL is
// offered.
//
// Lifecycle: created once, and never destroyed before the process ends.
// Threads: probe() by one thread at a time; everything else by any thread at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/device/device.h"
#include "plugin/device/gid_choice.h"
#include "plugin/device/rail_devices.h"
#include "plugin/gdr/prove.h"
#include "plugin/gdr/register.h"
#include "plugin/gdr/report.h"
#include "topology/distance.h"

namespace beeline::gdr {

struct Options {
  std::string cuda_lib = {};  // empty: libcuda.so.1
  std::string sysfs_root = "/sys";
  bool dmabuf = true;         // dma-bufs may be used
  bool proof = true;          // transfer data before a pair is offered
  bool always_flush = false;  // also if CUDA says that it is not necessary
  bool never_flush = false;
  topology::Distance level =
      topology::Distance::kPxb;  // NCCL does not use pairs that are farther apart
  GidPolicy gid = {};
  PkeyChoice pkey = {};
};

// The pointer types of a device in getProperties.
struct Offer {
  bool dmabuf = false;       // regMrDmaBuf
  bool pointer = false;      // regMr with a device pointer
  bool force_flush = false;  // NCCL must call iflush
};

// How the writes of NICs to a GPU's memory are made visible to its kernels.
struct FlushNeed {
  bool any = false;         // a flush is necessary
  bool is_forced = false;   // NCCL must be told to call iflush
  bool in_test = false;     // NCCL will not call iflush, so test() flushes before it reports "done"
  std::uint64_t owner = 0;  // the GPU's bit for flush_by_host(); 0: not known
  bool by_host = false;     // the driver can flush, too
};

class GpuDirect {
 public:
  using CacheOf = std::function<Result<MrCache*>(const Device&)>;

  // Loads the driver. If there is no usable CUDA driver, the first probe() returns a finding that
  // says so.
  GpuDirect(const Options& options, std::size_t devices);

  // Tests each GPU that this process has started to use since the last call, with every device:
  // NICs within `level` move data, for the others only registration is tested. Returns the new
  // findings, with the ids in report.h or no-gpu, cuda-broken, gpudirect-gpu-not-tried and
  // gpudirect-not-with-all. `machine` may be null.
  std::vector<Finding> probe(std::span<const Device> devices, const CacheOf& cache_of,
                             const topology::Graph* machine);

  bool has_driver() const noexcept { return cuda_.has_value(); }
  Offer offer(const Device& device) const noexcept;
  // The offer of a device that consists of these NICs. It includes a kind of memory if one of the
  // NICs takes it, because a NIC that refuses a buffer is left out for that buffer.
  Offer offer(RailDevices devices) const noexcept;
  // Whether it was tested, and does not work with each GPU in use. Registering may succeed all the
  // same, and data be lost.
  bool has_failed(const Device& device) const noexcept;

  // Null: it is not GPU memory, or there is no driver.
  const gpu::Gpu* owner_of(const void* pointer) const noexcept;
  Means means(const Device& device, const gpu::Gpu* owner) const noexcept;
  FlushNeed flush_need(const gpu::Gpu* owner) const noexcept;
  std::uint64_t buffer_id_of(const void* pointer) const noexcept;  // 0: not known
  // Makes the writes of all NICs visible to the GPUs with these bits, or with 0, to the GPU of the
  // calling thread's context.
  bool flush_by_host(std::uint64_t owners) const noexcept;

 private:
  // The offer for a device: what works with every GPU that was tested.
  struct State {
    std::atomic<bool> dmabuf{false};
    std::atomic<bool> peermem{false};
    std::atomic<bool> pointer{false};  // by either way
    std::atomic<bool> is_tried{false};
    bool is_mixed = false;  // it works with some GPUs in use and not with others
  };

  State& state_of(const Device& device) const noexcept {
    return states_[static_cast<std::size_t>(device.index)];
  }
  void load_driver();
  void find(Finding finding) { findings_.push_back(std::move(finding)); }
  void find_broken_driver(const std::string& why);
  void probe_without_gpu(std::span<const Device> devices);
  void probe_new_gpus(std::span<const Device> devices, const CacheOf& cache_of,
                      const topology::Graph* machine);
  void probe_gpu(const gpu::Gpu& gpu, std::span<const Device> devices, const CacheOf& cache_of,
                 const topology::Graph* machine);
  void skip_gpu(const gpu::Gpu& gpu, std::span<const Device> devices, const std::string& why);
  Proof probe_pair(const Device& device, const gpu::Gpu& gpu, gpu::Memory& memory,
                   const CacheOf& cache_of, bool transfer);
  // Makes findings of the results for the GPU, and stores the results.
  void record_results(const gpu::Gpu& gpu, std::span<const Tried> all);
  void record_device(const Device& device, const Proof& proof);
  Ways ask(const Device& device, const gpu::Gpu& gpu) const;
  static void assume(State& state, const Ways& ways) noexcept;
  static void combine(State& state, const Ways& ways) noexcept;
  std::uint64_t bit_of(const gpu::Gpu& gpu) const noexcept;
  bool flush_one(const gpu::Gpu& gpu) const noexcept;
  bool flush_current() const noexcept;
  topology::Distance level_for(const gpu::Gpu& gpu) const noexcept;

  Options options_;
  std::optional<gpu::Cuda> cuda_;
  std::vector<gpu::Gpu> gpus_;   // by ordinal
  std::vector<bool> is_probed_;  // by ordinal
  bool has_probed_ = false;
  std::vector<Finding> findings_;  // since the last probe()
  std::unique_ptr<State[]> states_;
};

}  // namespace beeline::gdr
