// SPDX-License-Identifier: Apache-2.0
// The mirrors of this process's GPU memory. Peers put data into the inboxes and list it
// (nic/deferred_writes.h); only this process can copy it to its GPU. It does so before it returns a
// completion, before a device reads the region, and every millisecond in a thread, for a GPU kernel
// that waits for data while no thread polls.
//
// Lifecycle: the thread starts with the first mirror and ends with the Runtime.
// Threads: all functions may be called from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "common/base/problem.h"
#include "softnic/nic/gpu_mirror.h"

namespace softnic {

class Runtime;

class GpuMirrors {
 public:
  explicit GpuMirrors(Runtime& runtime) noexcept : runtime_(runtime) {}
  ~GpuMirrors();

  // Whether GPU memory lies in the first or the last page of the range, according to the CUDA
  // driver that the program has loaded.
  bool is_on_gpu(std::uint64_t address, std::size_t length);
  // Creates a mirror of GPU memory, which may include the rest of the pages in which the memory
  // begins and ends. The error is an errno; EFAULT means that the CUDA driver does not know it as
  // GPU memory, or that the program has loaded no driver; ENOMEM means that no context for
  // copies can be created or that no address space is left.
  beeline::Result<std::unique_ptr<GpuMirror>, int> make(std::uint64_t address, std::size_t length);
  // Returns the number of the mirror, or 0 if the thread cannot be started.
  std::uint32_t add(MrRecord& region, std::unique_ptr<GpuMirror> mirror);
  // Copies data that has arrived to the GPU first.
  void remove(std::uint32_t mirror);

  // These two copy data that has arrived to the GPUs and wait for the copies.
  void copy_arrived() {
    if (count_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      copy_every_arrived();
  }
  bool copy_to_gpu(std::uint32_t mirror);
  // Copies the GPU's bytes, including all data that has arrived, to the outbox.
  bool copy_from_gpu(std::uint32_t mirror, std::uint64_t offset, std::uint64_t length);

 private:
  struct Entry {
    MrRecord& region;
    std::unique_ptr<GpuMirror> mirror;
  };

  const beeline::gpu::Cuda* driver_locked();
  // Null if there is none yet and none can be made, which is printed.
  GpuCopier* copier_of(beeline::gpu::Ordinal gpu);
  void copy_every_arrived();
  void copy_every_arrived_locked();
  bool copy_to_gpu_locked(const Entry& entry);
  bool check_copy(const beeline::Outcome<void>& done);
  void report_once(const std::string& why);
  void thread_main();

  Runtime& runtime_;
  std::mutex mutex_;
  std::optional<beeline::gpu::Cuda> cuda_;
  // The copiers, by GPU. They are kept, because a context takes long to create.
  std::map<beeline::gpu::Ordinal, std::unique_ptr<GpuCopier>> copiers_;
  std::map<std::uint32_t, Entry> mirrors_;
  std::uint32_t last_number_ = 0;
  std::atomic<std::size_t> count_{0};
  std::condition_variable ending_;
  bool is_ending_ = false;
  std::set<std::string> reported_;  // each message is printed once
  std::thread thread_;
};

}  // namespace softnic
