// SPDX-License-Identifier: Apache-2.0
//
// A region is in the map from the first request until its last reference is dropped. It is pending
// while the first requester registers it, and ready afterwards.
#include "plugin/memory/mr_cache.h"

#include <unistd.h>

#include <condition_variable>

#include "common/check/assert.h"

namespace beeline {

// Its members are written under the cache's mutex; only the last reference resets `mr` without it.
struct MrRef::Region {
  enum class State { kPending, kReady, kFailed };

  std::uintptr_t start = 0;
  std::size_t length = 0;
  unsigned access = 0;
  verbs::Ordering ordering = verbs::Ordering::kStrict;
  MemoryKind kind = MemoryKind::kHost;
  std::uint64_t buffer_id = 0;

  State state = State::kPending;
  int references = 0;
  std::condition_variable left_pending;
  verbs::Mr mr;

  // A larger region is not used: its owner may deregister it and unmap the rest of its pages, and
  // the NIC would still access pages that are not mapped any more.
  bool is_same_as(const Region& wanted) const noexcept {
    return start == wanted.start && length == wanted.length && access == wanted.access &&
           ordering == wanted.ordering && kind == wanted.kind && buffer_id == wanted.buffer_id;
  }
};

namespace {

std::size_t page_bytes() noexcept {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));  // makes no system call
}

}  // namespace

ibv_mr* MrRef::mr() const noexcept {
  BL_ASSERT(cache_ != nullptr, "an empty reference has no registration");
  return region_->mr.get();
}

void MrRef::reset() noexcept {
  if (cache_ == nullptr) return;
  const std::shared_ptr<Region> region = std::move(region_);
  std::exchange(cache_, nullptr)->release(*region);
}

MrCache::MrCache(const verbs::Api& api, ibv_pd* pd, bool relaxed_ordering)
    : api_(&api), pd_(pd), relaxed_ordering_(relaxed_ordering) {}

MrCache::~MrCache() { BL_ASSERT(regions_.empty(), "a cache outlives its references"); }

MrCacheStats MrCache::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

Result<MrRef> MrCache::acquire(const MrRequest& request) {
  const auto wanted = std::make_shared<Region>();
  BL_TRY(align(request, *wanted));
  {
    std::unique_lock lock(mutex_);
    while (const auto found = find_locked(*wanted)) {
      if (found->state == Region::State::kReady) {
        ++found->references;
        ++stats_.hits;
        return MrRef(*this, found);
      }
      // The registration may fail, or its last reference may be dropped before this thread runs, so
      // search again.
      found->left_pending.wait(lock, [&] { return found->state != Region::State::kPending; });
    }
    wanted->references = 1;
    regions_.emplace(wanted->start, wanted);
    ++stats_.misses;
  }
  return finish(wanted, register_region(*wanted, request));
}

// Aligns the range to pages. The start of a dma-buf's range is not aligned if the dma-buf does not
// contain the beginning of that page.
Status MrCache::align(const MrRequest& request, Region& region) const {
  const auto address = reinterpret_cast<std::uintptr_t>(request.address);
  if (request.length == 0) return fail(Errc::kInvalid, "register an empty range");
  const std::size_t page = page_bytes();
  const std::uintptr_t most = UINTPTR_MAX - page;  // leaves room for rounding up
  if (address > most || request.length > most - address) {
    return fail(Errc::kInvalid, "register a range beyond the end of the address space");
  }
  const std::size_t into_page = address % page;
  const bool keep_start = request.kind == MemoryKind::kDmabuf && request.dmabuf_offset < into_page;
  const std::uintptr_t end = (address + request.length + page - 1) / page * page;
  region.start = keep_start ? address : address - into_page;
  region.length = end - region.start;
  region.access = request.access;
  region.ordering = relaxed_ordering_ ? request.ordering : verbs::Ordering::kStrict;
  region.kind = request.kind;
  region.buffer_id = request.buffer_id;
  return {};
}

Result<verbs::Mr> MrCache::register_region(const Region& region, const MrRequest& request) const {
  if (region.kind != MemoryKind::kDmabuf) {
    return verbs::reg_mr(*api_, pd_, reinterpret_cast<void*>(region.start), region.length,
                         region.access, region.ordering);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(request.address);
  return verbs::reg_dmabuf_mr(*api_, pd_, request.dmabuf_fd,
                              request.dmabuf_offset - (address - region.start), region.start,
                              region.length, region.access, region.ordering);
}

// Ends the pending state and wakes the threads that wait for it.
Result<MrRef> MrCache::finish(const std::shared_ptr<Region>& region, Result<verbs::Mr> made) {
  const std::lock_guard lock(mutex_);
  BL_ASSERT(region->state == Region::State::kPending, "a region is registered once");
  region->left_pending.notify_all();
  if (!made) {
    region->state = Region::State::kFailed;
    erase_locked(*region);
    ++stats_.failed;
    return fail(made.error());
  }
  region->mr = *std::move(made);
  region->state = Region::State::kReady;
  ++stats_.regions;
  stats_.bytes += region->length;
  return MrRef(*this, region);
}

// A ready region, otherwise a pending one, otherwise null.
std::shared_ptr<MrCache::Region> MrCache::find_locked(const Region& wanted) const {
  std::shared_ptr<Region> pending;
  const auto [begin, end] = regions_.equal_range(wanted.start);
  for (auto at = begin; at != end; ++at) {
    const std::shared_ptr<Region>& region = at->second;
    if (!region->is_same_as(wanted)) continue;
    if (region->state == Region::State::kReady) return region;
    pending = region;
  }
  return pending;
}

void MrCache::erase_locked(const Region& region) {
  auto [at, end] = regions_.equal_range(region.start);
  while (at != end && at->second.get() != &region) ++at;
  BL_ASSERT(at != end, "a region is in the map until its last reference is dropped");
  regions_.erase(at);
}

void MrCache::release(Region& region) noexcept {
  {
    const std::lock_guard lock(mutex_);
    BL_ASSERT(region.references > 0, "a reference is dropped once");
    if (--region.references > 0) return;
    erase_locked(region);
    --stats_.regions;
    stats_.bytes -= region.length;
  }
  region.mr.reset();
}

}  // namespace beeline
