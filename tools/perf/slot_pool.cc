// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/slot_pool.h"

#include <algorithm>

namespace beeline::perf {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kMemoryPerRank = size_t{64} << 20;

}  // namespace

Outcome<SlotPool> SlotPool::make(Rank& rank, End& end, size_t size, size_t slots) {
  const size_t stride = std::max(kLine, (size + kLine - 1) / kLine * kLine);
  SlotPool pool(end, size, stride, slots, BL_TRY(Buffer::make(rank.memory(), stride * slots)));
  BL_TRY(rank.on_service([&]() -> Outcome<bool> {
    pool.mr_ = BL_TRY(end.register_memory(pool.memory_, pool.memory_.size()));
    return true;
  }));
  return pool;
}

Outcome<bool> SlotPool::release(Rank& rank) {
  return rank.on_service([this]() -> Outcome<bool> { return BL_TRY(end_->deregister(mr_)); });
}

size_t slots_for(size_t size, size_t depth, size_t ends) {
  const size_t each = std::max<size_t>(size, 1) * std::max<size_t>(ends, 1);
  return std::clamp<size_t>(kMemoryPerRank / each, 1, depth);
}

}  // namespace beeline::perf
