// SPDX-License-Identifier: Apache-2.0
//
// A cache of the memory registrations in one protection domain. NCCL registers the same buffer for
// each connection; a request for pages that are registered already takes a reference.
//
// Threads: any. Registering and deregistering take from milliseconds to seconds, and happen without
// the lock. A request for a range that is being registered waits for that registration only.
// Cost: a hit is one lookup in a map under a mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "plugin/verbs/create.h"

namespace beeline {

enum class MemoryKind : std::uint8_t {
  kHost,
  kCuda,    // by address, through the peer-memory module
  kDmabuf,  // by a dma-buf of the range
};

struct MrRequest {
  void* address = nullptr;
  std::size_t length = 0;
  unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  verbs::Ordering ordering = verbs::Ordering::kStrict;
  MemoryKind kind = MemoryKind::kHost;
  int dmabuf_fd = -1;               // stays the caller's, who may close it after acquire()
  std::uint64_t dmabuf_offset = 0;  // the position of `address` in the dma-buf
  // CUDA's number of the allocation, because another allocation may get the same address later. 0:
  // not known, or host memory.
  std::uint64_t buffer_id = 0;
};

struct MrCacheStats {
  std::uint64_t hits = 0;    // requests that took a reference
  std::uint64_t misses = 0;  // requests that called the library
  std::uint64_t failed = 0;  // misses whose registration failed
  std::size_t regions = 0;   // registered at present
  std::uint64_t bytes = 0;   // registered at present
};

class MrCache;

// One reference to a registration. Dropping the last one deregisters the memory; when that returns,
// the NIC cannot access it any more.
class MrRef {
 public:
  MrRef() noexcept = default;
  MrRef(MrRef&& other) noexcept
      : cache_(std::exchange(other.cache_, nullptr)), region_(std::move(other.region_)) {}
  MrRef& operator=(MrRef other) noexcept {
    std::swap(cache_, other.cache_);
    std::swap(region_, other.region_);
    return *this;
  }
  ~MrRef() { reset(); }

  explicit operator bool() const noexcept { return cache_ != nullptr; }
  ibv_mr* mr() const noexcept;
  std::uint32_t lkey() const noexcept { return mr()->lkey; }
  std::uint32_t rkey() const noexcept { return mr()->rkey; }
  void reset() noexcept;

 private:
  friend class MrCache;
  struct Region;
  MrRef(MrCache& cache, std::shared_ptr<Region> region) noexcept
      : cache_(&cache), region_(std::move(region)) {}

  MrCache* cache_ = nullptr;
  std::shared_ptr<Region> region_;
};

// Lifecycle: destroyed before the protection domain.
class MrCache {
 public:
  // Without relaxed_ordering, all memory is registered with strict ordering.
  MrCache(const verbs::Api& api, ibv_pd* pd, bool relaxed_ordering = true);
  ~MrCache();

  // Registers the pages of the range, or takes a reference to a region of the same pages with the
  // same access, ordering and kind. Errors: kInvalid for a range that is empty or wraps around,
  // kUnsupported for a dma-buf if the library has none, kNoMemory (see memlock_advice), or the
  // error of verbs.
  Result<MrRef> acquire(const MrRequest& request);

  MrCacheStats stats() const;

 private:
  friend class MrRef;
  using Region = MrRef::Region;
  // By start address. Ranges may overlap.
  using Regions = std::multimap<std::uintptr_t, std::shared_ptr<Region>>;

  Status align(const MrRequest& request, Region& region) const;
  Result<verbs::Mr> register_region(const Region& region, const MrRequest& request) const;
  Result<MrRef> finish(const std::shared_ptr<Region>& region, Result<verbs::Mr> made);
  std::shared_ptr<Region> find_locked(const Region& wanted) const;
  void erase_locked(const Region& region);
  void release(Region& region) noexcept;

  const verbs::Api* api_;
  ibv_pd* pd_;
  bool relaxed_ordering_;
  mutable std::mutex mutex_;
  Regions regions_;
  MrCacheStats stats_;
};

}  // namespace beeline
