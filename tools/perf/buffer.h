// SPDX-License-Identifier: Apache-2.0
//
// Memory that messages leave from and arrive in, be it the host's or a GPU's: an address for the
// plugin, and a stage in the host's memory, where bytes are written before they are stored and
// looked at after they were fetched. Host memory is its own stage, and nothing is copied.
#pragma once

#include <memory>
#include <utility>

#include "common/base/fd.h"
#include "tools/perf/guarded_buffer.h"
#include "tools/perf/piece.h"
#include "tools/perf/rank_memory.h"

namespace beeline::perf {

class Buffer {
 public:
  // Full of poison, guards on both sides. `memory` outlives it.
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
  // For the plugin. Of a GPU it must not be touched here.
  std::uint8_t* address(size_t at = 0) const noexcept {
    return is_staged() ? on_gpu(stage_.data() + at) : stage_.data() + at;
  }

  std::uint8_t* stage(size_t at = 0) const noexcept { return stage_.data() + at; }
  // What stands in the stage becomes what the plugin sees.
  NetResult<void> store(Piece piece) const noexcept {
    return is_staged() ? copy_in(stage(piece.at), piece.size) : NetResult<void>{};
  }
  // What the plugin left comes into the stage, which is returned.
  NetResult<std::uint8_t*> fetch(Piece piece) const noexcept {
    if (is_staged()) BL_TRY(copy_out(stage(piece.at), piece.size));
    return stage(piece.at);
  }

  NetResult<void> poison(Piece piece) const noexcept;
  NetResult<void> poison() const noexcept { return poison({0, size()}); }
  // How many bytes of the guards are not what they were.
  NetResult<size_t> broken_guards() const noexcept;

  // A reference for code that registers the memory. The memory exists as long as there is a
  // reference, also after the buffer is gone: other ranks may still write to it after this rank has
  // failed, and would otherwise report a fault.
  std::shared_ptr<void> lease() const noexcept { return lease_; }

  // A dma-buf of its first `bytes`, in whole pages of the host, as NCCL asks for one.
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
