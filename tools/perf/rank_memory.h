// SPDX-License-Identifier: Apache-2.0
//
// The kind of memory that a rank uses for its buffers, how that is registered, and whether received
// data has to be flushed.
#pragma once

#include <memory>

#include "tools/perf/devices.h"
#include "tools/perf/rank_gpu.h"

namespace beeline::perf {

// How a buffer is registered: with regMr as host memory, with regMr as GPU memory, or with
// regMrDmaBuf.
enum class BufferKind { kHost, kPeermem, kDmabuf };
const char* to_string(BufferKind kind);

class RankMemory {
 public:
  // Opens the rank's GPU if this kind of memory needs one.
  static Outcome<RankMemory> open(MemoryChoice choice, int rank);

  BufferKind kind() const noexcept { return kind_; }
  const RankGpu* gpu() const noexcept { return gpu_.get(); }

  // Fails if the plugin's device does not support this kind of memory.
  Outcome<bool> check_support(const Net& net, const Device& device) const;
  // Whether data that was received through the device is flushed before it is read.
  bool flushes(FlushChoice choice, const Device& device) const;

 private:
  RankMemory(BufferKind kind, std::unique_ptr<RankGpu> gpu) : kind_(kind), gpu_(std::move(gpu)) {}

  BufferKind kind_;
  std::unique_ptr<RankGpu> gpu_;
};

}  // namespace beeline::perf
