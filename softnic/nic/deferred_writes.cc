// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/deferred_writes.h"

#include <sched.h>

#include <algorithm>
#include <vector>

#include "common/base/clock.h"

namespace softnic {
namespace {

constexpr std::uint64_t kStepBytes = 256 << 10;
// The owner of a mirror empties the list every millisecond, so this is ample.
constexpr std::int64_t kMaxWaitForOwnerNs = beeline::kNsPerSec;

void apply_range(Peer& owner, const MrRecord& region, DeferredRange range) {
  std::vector<std::byte> bytes(std::min(range.length, kStepBytes));
  while (range.length != 0) {
    const std::uint64_t step = std::min(range.length, kStepBytes);
    const iovec ours = {bytes.data(), step};
    const iovec from = {reinterpret_cast<void*>(region.staging + range.offset), step};
    const iovec to = {reinterpret_cast<void*>(region.base + range.offset), step};
    if (owner.read(&ours, 1, &from, 1, step) != Peer::Copied::kDone) return;
    if (owner.write(&ours, 1, &to, 1, step) != Peer::Copied::kDone) return;
    range.offset += step;
    range.length -= step;
  }
}

// The list is emptied last, so if the holder of the lock dies, the next one moves the ranges again.
// Bytes are copied under this lock; that happens only with the hazard `hide`.
void apply_deferred_locked(Peer& owner, MrRecord& region) {
  const std::uint32_t count = region.deferred_count.load();
  for (std::uint32_t i = 0; i < count; ++i) {
    apply_range(owner, region, owner.arena().deferred(region, i));
  }
  region.deferred_count.store(0);
}

// A write that continues the last range extends it.
bool extend_last_locked(const Arena& arena, MrRecord& region, std::uint64_t offset,
                        std::uint64_t length) {
  const std::uint32_t count = region.deferred_count.load();
  if (count == 0) return false;
  DeferredRange& last = arena.deferred(region, count - 1);
  if (last.offset + last.length != offset) return false;
  last.length += length;
  return true;
}

bool is_ours(const Runtime& runtime, const Peer& owner) { return owner.slot() == runtime.slot(); }

// Takes the lock when the list has room. Returns false, without the lock, if it stays full.
bool lock_with_room(Runtime& runtime, Peer& owner, MrRecord& region) {
  const std::int64_t end = beeline::now_ns() + kMaxWaitForOwnerNs;
  do {
    runtime.take(region.deferred_lock);
    const bool full = region.deferred_count.load() == kMaxDeferred;
    if (full && region.mirror == 0) apply_deferred_locked(owner, region);
    if (!full || region.mirror == 0) return true;
    region.deferred_lock.unlock();
    if (is_ours(runtime, owner)) {
      (void)runtime.mirrors().copy_to_gpu(region.mirror);
    } else {
      ::sched_yield();
    }
  } while (beeline::now_ns() < end);
  return false;
}

}  // namespace

bool record_deferred(Runtime& runtime, Peer& owner, MrRecord& region, std::uint64_t address,
                     std::uint64_t length) {
  const std::uint64_t offset = address - region.base;
  if (!lock_with_room(runtime, owner, region)) return false;
  if (!extend_last_locked(owner.arena(), region, offset, length)) {
    const std::uint32_t count = region.deferred_count.load();
    owner.arena().deferred(region, count) = {offset, length};
    region.deferred_count.store(count + 1);
  }
  region.deferred_lock.unlock();
  return true;
}

bool record_own_deferred(Runtime& runtime, MrRecord& region, std::uint64_t address,
                         std::uint64_t length) {
  const auto self = runtime.peer(runtime.slot());
  return self && record_deferred(runtime, *self, region, address, length);
}

bool apply_deferred(Runtime& runtime, Peer& owner, MrRecord& region, std::uint64_t address,
                    std::uint64_t length) {
  if (region.mirror != 0) {
    return is_ours(runtime, owner) &&
           runtime.mirrors().copy_from_gpu(region.mirror, address - region.base, length);
  }
  if (region.deferred_count.load() == 0) return true;
  runtime.take(region.deferred_lock);
  apply_deferred_locked(owner, region);
  region.deferred_lock.unlock();
  return true;
}

bool apply_own_deferred(Runtime& runtime, MrRecord& region, std::uint64_t address,
                        std::uint64_t length) {
  const auto self = runtime.peer(runtime.slot());
  return self && apply_deferred(runtime, *self, region, address, length);
}

void reveal_hidden_writes() {
  const auto runtime = Runtime::find();
  if (!runtime) return;
  runtime->hiding_regions().for_each([&](MrRecord& region) {
    (void)apply_own_deferred(*runtime, region, region.base, region.length);
  });
}

}  // namespace softnic
