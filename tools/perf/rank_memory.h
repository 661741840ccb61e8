// SPDX-License-Identifier: Apache-2.0
//
// In which memory a rank has its buffers, how a plugin is told of them, and what NCCL asks of it
// for their sake.
#pragma once

#include <memory>

#include "tools/perf/devices.h"
#include "tools/perf/rank_gpu.h"

namespace beeline::perf {

// How a buffer is registered: with regMr as host memory, with regMr as a GPU's pointer, with
// regMrDmaBuf.
enum class BufferKind { kHost, kPeermem, kDmabuf };
const char* to_string(BufferKind kind);

class RankMemory {
 public:
  // Opens the rank's GPU where it needs one.
  static Outcome<RankMemory> open(MemoryChoice choice, int rank);

  BufferKind kind() const noexcept { return kind_; }
  const RankGpu* gpu() const noexcept { return gpu_.get(); }

  // An error when the plugin's device does not take such memory.
  Outcome<bool> check_support(const Net& net, const Device& device) const;
  // Whether what arrived through the device is flushed before it is looked at.
  bool flushes(FlushChoice choice, const Device& device) const;

 private:
  RankMemory(BufferKind kind, std::unique_ptr<RankGpu> gpu) : kind_(kind), gpu_(std::move(gpu)) {}

  BufferKind kind_;
  std::unique_ptr<RankGpu> gpu_;
};

}  // namespace beeline::perf
