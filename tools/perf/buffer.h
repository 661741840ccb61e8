// SPDX-License-Identifier: Apache-2.0
//
// A buffer for messages, in host or GPU memory. The plugin gets its address. This program reads and
// writes it through a staging copy in host memory: store() copies from the stage, fetch() to it.
// For host memory, the stage is the buffer itself, and nothing is copied.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/fd.h"
#include "tools/perf/guarded_buffer.h"
#include "tools/perf/piece.h"
#include "tools/perf/rank_memory.h"

namespace beeline::perf {

class Buffer {
 public:
  // Filled with poison, with guard bytes on both sides. `memory` must outlive it.
  static NetResult<Buffer> make(const RankMemory& memory, size_t size);
  Buffer(Buffer&& other) noexcept
      : memory_(other.memory_),
        stage_(std::move(other.stage_)),
        allocation_(std::exchange(other.allocation_, 0)),
        guarded_(other.guarded_),
        lease_(std::move(other.lease_)) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer();

  BufferKind kind() const noexcept { return memory_->kind(); }
  size_t size() const noexcept { return stage_.size(); }
  // The address for the plugin. A GPU's address must not be dereferenced here.
  std::uint8_t* address(size_t at = 0) const noexcept {
    return is_staged() ? on_gpu(stage_.data() + at) : stage_.data() + at;
  }

  std::uint8_t* stage(size_t at = 0) const noexcept { return stage_.data() + at; }
  // Copies from the stage to the buffer.
  NetResult<void> store(Piece piece) const noexcept {
    return is_staged() ? copy_in(stage(piece.at), piece.size) : NetResult<void>{};
  }
  // Copies from the buffer to the stage, and returns the stage.
  NetResult<std::uint8_t*> fetch(Piece piece) const noexcept {
    if (is_staged()) BL_TRY(copy_out(stage(piece.at), piece.size));
    return stage(piece.at);
  }

  NetResult<void> poison(Piece piece) const noexcept;
  NetResult<void> poison() const noexcept { return poison({0, size()}); }
  // The number of guard bytes that have been overwritten.
  NetResult<size_t> broken_guards() const noexcept;

  // A reference for code that registers the memory. The memory exists as long as there is a
  // reference, also after the buffer is gone: other ranks may still write to it after this rank has
  // failed, and would otherwise report a fault.
  std::shared_ptr<void> lease() const noexcept { return lease_; }

  // A dma-buf of the first `bytes`, rounded up to whole host pages, as NCCL requests it.
  Outcome<UniqueFd> export_pages(size_t bytes) const;

 private:
  Buffer(const RankMemory& memory, size_t size) : memory_(&memory), stage_(size) {}

  bool is_staged() const noexcept { return guarded_ != 0; }
  std::uint8_t* on_gpu(const std::uint8_t* staged) const noexcept {
    return reinterpret_cast<std::uint8_t*>(pointer(staged));
  }
  gpu::DevicePtr pointer(const std::uint8_t* staged) const noexcept {
    return guarded_ + static_cast<gpu::DevicePtr>(staged - stage_.whole());
  }
  NetResult<void> copy_in(const std::uint8_t* staged, size_t bytes) const noexcept;
  NetResult<void> copy_out(std::uint8_t* staged, size_t bytes) const noexcept;

  const RankMemory* memory_;
  GuardedBuffer stage_;
  gpu::DevicePtr allocation_ = 0;
  gpu::DevicePtr guarded_ = 0;  // the same in the GPU's memory, guards and all; 0: there is none
  std::shared_ptr<void> lease_ = std::make_shared<char>();
};

}  // namespace beeline::perf
