// SPDX-License-Identifier: Apache-2.0
//
// GPUDirect on this host: which NIC reaches which GPU's memory, found out by trying, and what is
// offered to NCCL because of it.
//
// Lifecycle: made once, never destroyed before the process ends.
// Threads: look() by one at a time; everything else by any, at any time.
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
#include "plugin/gdr/prove.h"
#include "plugin/gdr/register.h"
#include "plugin/gdr/report.h"
#include "topology/distance.h"

namespace beeline::gdr {

struct Options {
  std::string cuda_lib = {};  // empty: libcuda.so.1
  std::string sysfs_root = "/sys";
  bool dmabuf = true;         // may be used
  bool proof = true;          // data is moved before a pair is offered
  bool always_flush = false;  // also where CUDA says that it need not be
  bool never_flush = false;
  topology::Distance level = topology::Distance::kPxb;  // farther pairs NCCL does not use
  GidPolicy gid = {};
  int pkey_index = -1;
};

// What getProperties says of a device.
struct Offer {
  bool dmabuf = false;       // regMrDmaBuf
  bool pointer = false;      // regMr with a device pointer
  bool force_flush = false;  // NCCL has to ask for flushes
};

// How what NICs have written to a GPU's memory is made visible to its kernels.
struct FlushNeed {
  bool any = false;         // iflush has something to do
  bool is_forced = false;   // NCCL has to be told to call it
  bool in_test = false;     // where iflush will not come, before test() says "done"
  std::uint64_t owner = 0;  // one bit, for flush_by_host(); 0: not known
  bool by_host = false;     // the driver can do it, too
};

class GpuDirect {
 public:
  using CacheOf = std::function<Result<MrCache*>(const Device&)>;

  // Loads the driver. The first look() returns what was wrong with it.
  GpuDirect(const Options& options, std::size_t devices);

  // Tries each GPU that came into use since the last look with every device. Returns what is new,
  // as in report.h; other ids are no-gpu, cuda-broken, gpudirect-gpu-not-tried and
  // gpudirect-not-with-all. `machine` may be null.
  std::vector<Finding> look(std::span<const Device> devices, const CacheOf& cache_of,
                            const topology::Graph* machine);

  bool has_driver() const noexcept { return cuda_.has_value(); }
  Offer offer(const Device& device) const noexcept;

  // Null: no GPU's memory, or no driver.
  const gpu::Gpu* owner_of(const void* pointer) const noexcept;
  Means means(const Device& device, const gpu::Gpu* owner) const noexcept;
  FlushNeed flush_need(const gpu::Gpu* owner) const noexcept;
  std::uint64_t buffer_id_of(const void* pointer) const noexcept;  // 0: not known
  // Waits until all that NICs have written is visible to these GPUs, whichever is the calling
  // thread's; without a bit, to that one.
  bool flush_by_host(std::uint64_t owners) const noexcept;

 private:
  // What is offered of a device: what every pair that was tried can do.
  struct State {
    std::atomic<bool> dmabuf{false};
    std::atomic<bool> peermem{false};
    std::atomic<bool> pointer{false};  // by one way or the other
    std::atomic<bool> is_tried{false};
    bool is_divided = false;  // it works with some GPUs in use and not with others
  };

  State& state_of(const Device& device) const noexcept {
    return states_[static_cast<std::size_t>(device.index)];
  }
  void load_driver();
  void find(Finding finding) { findings_.push_back(std::move(finding)); }
  void find_broken(const std::string& why);
  void look_without_gpu(std::span<const Device> devices);
  void try_gpus(std::span<const Device> devices, const CacheOf& cache_of,
                const topology::Graph* machine);
  void try_gpu(const gpu::Gpu& gpu, std::span<const Device> devices, const CacheOf& cache_of,
               const topology::Graph* machine);
  void leave_untried(const gpu::Gpu& gpu, std::span<const Device> devices, const std::string& why);
  Proof try_pair(const Device& device, const gpu::Gpu& gpu, gpu::Memory& memory,
                 const CacheOf& cache_of, bool transfer);
  // Makes findings of the results for the GPU, and stores the results.
  void settle(const gpu::Gpu& gpu, std::span<const Tried> all);
  void settle_device(const Device& device, const Proof& proof);
  Ways ask(const Device& device, const gpu::Gpu& gpu) const;
  static void assume(State& state, const Ways& ways) noexcept;
  static void take(State& state, const Ways& ways) noexcept;
  std::uint64_t bit_of(const gpu::Gpu& gpu) const noexcept;
  bool flush_one(const gpu::Gpu& gpu) const noexcept;
  bool flush_current() const noexcept;
  topology::Distance level_for(const gpu::Gpu& gpu) const noexcept;

  Options options_;
  std::optional<gpu::Cuda> cuda_;
  std::vector<gpu::Gpu> gpus_;   // by ordinal
  std::vector<bool> looked_at_;  // by ordinal
  bool has_looked_ = false;
  std::vector<Finding> findings_;  // since look() last returned
  std::unique_ptr<State[]> states_;
};

}  // namespace beeline::gdr
