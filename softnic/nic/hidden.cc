// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/hidden.h"

#include <algorithm>
#include <vector>

namespace softnic {
namespace {

constexpr uint64_t kStepBytes = 256 << 10;

void move_range(Peer& owner, const MrRecord& region, HiddenRange range) {
  std::vector<std::byte> bytes(std::min(range.length, kStepBytes));
  while (range.length != 0) {
    const uint64_t step = std::min(range.length, kStepBytes);
    const iovec ours = {bytes.data(), step};
    const iovec from = {reinterpret_cast<void*>(region.shadow + range.offset), step};
    const iovec to = {reinterpret_cast<void*>(region.base + range.offset), step};
    if (owner.read(&ours, 1, &from, 1, step) != Peer::Copied::kDone) return;
    if (owner.write(&ours, 1, &to, 1, step) != Peer::Copied::kDone) return;
    range.offset += step;
    range.length -= step;
  }
}

// The list is emptied last: whoever takes the lock from a dead holder moves the ranges once more.
// Bytes do move under this lock; it exists only with the hazard on.
void reveal_locked(Peer& owner, MrRecord& region) {
  const uint32_t count = region.hidden_count.load();
  for (uint32_t i = 0; i < count; ++i) {
    move_range(owner, region, owner.arena().hidden(region, i));
  }
  region.hidden_count.store(0);
}

}  // namespace

void note_hidden(Runtime& runtime, Peer& owner, MrRecord& region, uint64_t address,
                 uint64_t length) {
  runtime.take(region.hidden_lock);
  if (region.hidden_count.load() == kMaxHidden) reveal_locked(owner, region);
  const uint32_t count = region.hidden_count.load();
  owner.arena().hidden(region, count) = {address - region.base, length};
  region.hidden_count.store(count + 1);
  region.hidden_lock.unlock();
}

void reveal(Runtime& runtime, Peer& owner, MrRecord& region) {
  if (region.hidden_count.load() == 0) return;
  runtime.take(region.hidden_lock);
  reveal_locked(owner, region);
  region.hidden_lock.unlock();
}

void reveal_own(Runtime& runtime, MrRecord& region) {
  if (const auto self = runtime.peer(runtime.slot())) reveal(runtime, *self, region);
}

}  // namespace softnic
