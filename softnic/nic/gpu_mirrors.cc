// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/gpu_mirrors.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/blocked_signals.h"
#include "common/gpu/gpu.h"
#include "softnic/nic/memory_source.h"
#include "softnic/nic/runtime.h"

namespace softnic {
namespace {

using beeline::fail;
using beeline::Result;
namespace gpu = beeline::gpu;

// The longest time that data stays in an inbox if no thread polls.
constexpr std::chrono::milliseconds kPeriod(1);

// CUDA aligns every allocation to at least this.
constexpr std::uint64_t kLeastAlignment = 256;

// The GPU that has an allocation with bytes in [from, to), or -1. Asks for each place where an
// allocation may begin, so the range should be short.
gpu::Ordinal owner_between(const gpu::Cuda& cuda, std::uint64_t from, std::uint64_t to) {
  while (from < to) {
    const gpu::Ordinal owner = gpu::owner_of(cuda, reinterpret_cast<const void*>(from));
    if (owner >= 0) return owner;
    const std::uint64_t next = (from / kLeastAlignment + 1) * kLeastAlignment;
    if (next <= from) break;  // the end of the address space
    from = next;
  }
  return -1;
}

// The GPUs with an allocation in the first and in the last page of a range. A registration has
// whole pages, and the driver exports these, but it answers CUDA_ERROR_INVALID_VALUE for bytes of
// these pages that are before or behind the allocation. So the first and the last byte say nothing.
struct Owners {
  Owners(const gpu::Cuda& cuda, std::uint64_t address, std::size_t length) {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t end = address + length;
    first = owner_between(cuda, address, std::min(end, (address / page + 1) * page));
    last = owner_between(cuda, std::max(address, (end - 1) / page * page), end);
  }
  gpu::Ordinal first;
  gpu::Ordinal last;
};

}  // namespace

GpuMirrors::~GpuMirrors() {
  {
    const std::lock_guard guard(mutex_);
    is_ending_ = true;
  }
  ending_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// Null if the program has not loaded a driver; softnic does not load one itself.
const gpu::Cuda* GpuMirrors::driver_locked() {
  if (cuda_) return &*cuda_;
  if (loaded_cuda_driver() == nullptr) return nullptr;
  auto loaded = gpu::load_cuda();
  if (!loaded && !loaded.error().absent) report_once(loaded.error().why);
  if (!loaded) return nullptr;
  cuda_ = std::move(*loaded);
  return &*cuda_;
}

bool GpuMirrors::is_on_gpu(std::uint64_t address, std::size_t length) {
  const std::lock_guard guard(mutex_);
  const gpu::Cuda* const cuda = driver_locked();
  if (cuda == nullptr) return false;
  const Owners owners(*cuda, address, length);
  return owners.first >= 0 || owners.last >= 0;
}

Result<std::unique_ptr<GpuMirror>, int> GpuMirrors::make(std::uint64_t address,
                                                         std::size_t length) {
  const std::lock_guard guard(mutex_);
  const gpu::Cuda* const cuda = driver_locked();
  if (cuda == nullptr) return fail(EFAULT);
  const Owners owners(*cuda, address, length);
  if (owners.first < 0 || owners.first != owners.last) return fail(EFAULT);
  GpuCopier* const copier = copier_of(owners.first);
  if (copier == nullptr) return fail(ENOMEM);
  auto mirror = GpuMirror::make(*copier, address, length);
  if (mirror) return mirror;
  report_once("cannot register GPU memory: no address space is left for it");
  return fail(ENOMEM);
}

GpuCopier* GpuMirrors::copier_of(gpu::Ordinal gpu) {
  std::unique_ptr<GpuCopier>& copier = copiers_[gpu];
  if (copier) return copier.get();
  auto made = GpuCopier::make(*cuda_, gpu);
  if (made) {
    copier = std::move(*made);
  } else {
    report_once("cannot register GPU memory (" + made.error().text +
                "): softnic copies in a CUDA context of its own for each GPU");
  }
  return copier.get();
}

std::uint32_t GpuMirrors::add(MrRecord& region, std::unique_ptr<GpuMirror> mirror) {
  const std::lock_guard guard(mutex_);
  if (!thread_.joinable()) {
    const beeline::BlockedSignals blocked;
    try {
      thread_ = std::thread([this] { thread_main(); });
    } catch (const std::system_error&) {
      return 0;
    }
  }
  const std::uint32_t number = ++last_number_;
  mirrors_.emplace(number, Entry{region, std::move(mirror)});
  count_.store(mirrors_.size());
  return number;
}

void GpuMirrors::remove(std::uint32_t mirror) {
  const std::lock_guard guard(mutex_);
  const auto found = mirrors_.find(mirror);
  (void)copy_to_gpu_locked(found->second);
  mirrors_.erase(found);
  count_.store(mirrors_.size());
}

void GpuMirrors::copy_every_arrived() {
  const std::lock_guard guard(mutex_);
  copy_every_arrived_locked();
}

void GpuMirrors::copy_every_arrived_locked() {
  for (const auto& [number, entry] : mirrors_) (void)copy_to_gpu_locked(entry);
}

bool GpuMirrors::copy_to_gpu(std::uint32_t mirror) {
  const std::lock_guard guard(mutex_);
  const auto found = mirrors_.find(mirror);
  return found != mirrors_.end() && copy_to_gpu_locked(found->second);
}

bool GpuMirrors::copy_from_gpu(std::uint32_t mirror, std::uint64_t offset, std::uint64_t length) {
  const std::lock_guard guard(mutex_);
  const auto found = mirrors_.find(mirror);
  return found != mirrors_.end() && copy_to_gpu_locked(found->second) &&
         check_copy(found->second.mirror->copy_from_gpu(offset, length));
}

// Holds the lock only while it takes the list and not while it copies.
bool GpuMirrors::copy_to_gpu_locked(const Entry& entry) {
  MrRecord& region = entry.region;
  if (region.deferred_count.load() == 0) return true;
  std::vector<DeferredRange> ranges;
  ranges.reserve(kMaxDeferred);
  runtime_.take(region.deferred_lock);
  const std::uint32_t count = region.deferred_count.load();
  for (std::uint32_t i = 0; i < count; ++i) ranges.push_back(runtime_.arena().deferred(region, i));
  region.deferred_count.store(0);
  region.deferred_lock.unlock();
  return check_copy(entry.mirror->copy_to_gpu(ranges));
}

// Prints why a copy failed, because its data is lost and no completion reports that.
bool GpuMirrors::check_copy(const beeline::Outcome<void>& done) {
  if (done) return true;
  report_once(
      "cannot copy between host and GPU (" + done.error().text +
      "), so data of a registered region is lost; deregister the region before its memory is "
      "freed or its context is destroyed");
  return false;
}

void GpuMirrors::report_once(const std::string& why) {
  if (reported_.insert(why).second) std::fprintf(stderr, "softnic: %s\n", why.c_str());
}

void GpuMirrors::thread_main() {
  ::pthread_setname_np(::pthread_self(), "softnic-gpu");
  std::unique_lock lock(mutex_);
  while (!ending_.wait_for(lock, kPeriod, [this] { return is_ending_; })) {
    copy_every_arrived_locked();
  }
}

}  // namespace softnic
