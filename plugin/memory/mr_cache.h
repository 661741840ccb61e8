// SPDX-License-Identifier: Apache-2.0
//
// The registrations of one protection domain. NCCL registers the same buffer once per connection;
// a request for the same pages takes a reference instead.
//
// Threads: any. Registering and deregistering take from milliseconds to seconds and happen outside
// the lock: whoever asks for a range that is just being registered waits for that registration
// only, and everyone else proceeds.
// Cost: a hit is one ordered lookup under a mutex.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "plugin/verbs/create.h"

namespace beeline {

enum class MemoryKind : std::uint8_t {
  kHost,
  kCuda,    // through the peer-memory module, by address
  kDmabuf,  // through a dma-buf of the range
};

struct MrRequest {
  void* address = nullptr;
  std::size_t length = 0;
  unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  verbs::Ordering ordering = verbs::Ordering::kStrict;
  MemoryKind kind = MemoryKind::kHost;
  int dmabuf_fd = -1;               // stays the caller's; may be closed when acquire returns
  std::uint64_t dmabuf_offset = 0;  // where in the dma-buf `address` lies
  // CUDA's number of the allocation: another one may get the same address later. 0: not known, or
  // host memory.
  std::uint64_t buffer_id = 0;
};

struct MrCacheStats {
  std::uint64_t hits = 0;    // an existing registration was enough
  std::uint64_t misses = 0;  // a registration was tried
  std::uint64_t failed = 0;  // of those, without success
  std::size_t regions = 0;   // registered now
  std::uint64_t bytes = 0;   // registered now
};

class MrCache;

// One reference to a registration. Giving it up deregisters when it was the last; the NIC cannot
// reach the memory any more when that returns.
class MrRef {
 public:
  MrRef() noexcept = default;
  MrRef(MrRef&& other) noexcept
      : cache_(std::exchange(other.cache_, nullptr)), region_(std::move(other.region_)) {}
  MrRef& operator=(MrRef&& other) noexcept {
    if (this != &other) {
      reset();
      cache_ = std::exchange(other.cache_, nullptr);
      region_ = std::move(other.region_);
    }
    return *this;
  }
  ~MrRef() { reset(); }

  explicit operator bool() const noexcept { return cache_ != nullptr; }
  // Only of a reference that holds one.
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

// Lifecycle: outlives its MrRefs, dies before the protection domain.
class MrCache {
 public:
  // relaxed_ordering = false: relaxed requests are taken for strict ones.
  MrCache(const verbs::Api& api, ibv_pd* pd, bool relaxed_ordering = true);
  MrCache(const MrCache&) = delete;
  MrCache& operator=(const MrCache&) = delete;
  ~MrCache();

  // Registers the pages that hold the range, or takes a reference to a region of the same pages
  // with the same access, ordering and kind. Errors: kInvalid for a range that is empty or wraps
  // around, kUnsupported for a dma-buf where there are none, kNoMemory (explain_enomem says why),
  // else what verbs said. A failure leaves nothing behind.
  Result<MrRef> acquire(const MrRequest& request);

  MrCacheStats stats() const;

 private:
  friend class MrRef;
  using Region = MrRef::Region;
  // By start of range. Ranges may overlap and contain each other.
  using Regions = std::multimap<std::uintptr_t, std::shared_ptr<Region>>;

  Status outline(const MrRequest& request, Region& region) const;
  Result<verbs::Mr> register_region(const Region& region, const MrRequest& request) const;
  Result<MrRef> settle(const std::shared_ptr<Region>& region, Result<verbs::Mr> made);
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
