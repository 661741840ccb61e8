// SPDX-License-Identifier: Apache-2.0
//
// The buffers of one end: equal slots in one registration, as NCCL's steps are.
#pragma once

#include <memory>

#include "tools/perf/end.h"
#include "tools/perf/rank.h"

namespace beeline::perf {

class SlotPool {
 public:
  // Registers on the service thread.
  static Outcome<SlotPool> make(Rank& rank, End& end, size_t size, size_t slots);
  Outcome<bool> release(Rank& rank);

  size_t size() const noexcept { return size_; }
  size_t slots() const noexcept { return slots_; }
  void* mr() const noexcept { return mr_; }
  // Where a message stands in memory(); and for the plugin.
  Piece piece(std::uint64_t message) const noexcept { return {message % slots_ * stride_, size_}; }
  std::uint8_t* at(std::uint64_t message) const noexcept {
    return memory_.address(piece(message).at);
  }
  const Buffer& memory() const noexcept { return memory_; }

 private:
  SlotPool(End& end, size_t size, size_t stride, size_t slots, Buffer memory)
      : end_(&end), size_(size), stride_(stride), slots_(slots), memory_(std::move(memory)) {}

  End* end_;
  size_t size_;
  size_t stride_;
  size_t slots_;
  Buffer memory_;
  void* mr_ = nullptr;
};

// How many slots of `size` an end gets: `depth`, or less where that would be a lot of memory. Slots
// hold the same bytes in every round, so messages in flight may share one.
size_t slots_for(size_t size, size_t depth, size_t ends);

}  // namespace beeline::perf
