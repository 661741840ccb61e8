// SPDX-License-Identifier: Apache-2.0
//
// The buffers of one end: slots of equal size in one registration, like the steps of NCCL's
// buffers.
#pragma once

#include <cstdint>
#include <memory>

#include "tools/perf/end.h"
#include "tools/perf/rank.h"

namespace beeline::perf {

class SlotPool {
 public:
  // Registers the memory. Runs on the service thread.
  static Outcome<SlotPool> make(Rank& rank, End& end, size_t size, size_t slots);
  Outcome<bool> release(Rank& rank);

  size_t size() const noexcept { return size_; }
  size_t slots() const noexcept { return slots_; }
  void* mr() const noexcept { return mr_; }
  // The offset of a message in memory(), and its address for the plugin.
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

// The number of slots of `size` for an end: `depth`, or less if that would need too much memory.
// Then messages in flight share a slot, which is possible because they contain the same bytes.
size_t slots_for(size_t size, size_t depth, size_t ends);

}  // namespace beeline::perf
