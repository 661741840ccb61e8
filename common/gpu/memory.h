// SPDX-License-Identifier: Apache-2.0
//
// GPU memory of our own, and ways into it that disturb nobody: another stream's work is neither
// waited for nor held up, and the thread's current context is what it was.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "common/base/fd.h"
#include "common/gpu/gpu.h"

namespace beeline::gpu {

// While it lives, this thread's calls are nothing to a graph that another thread captures. Without
// it, one that allocates fails then, and may spoil the capture.
class OutOfCapture {
 public:
  explicit OutOfCapture(const Cuda& cuda) noexcept;
  OutOfCapture(OutOfCapture&& other) noexcept
      : cuda_(std::exchange(other.cuda_, nullptr)), mode_(other.mode_) {}
  OutOfCapture& operator=(OutOfCapture&&) = delete;
  ~OutOfCapture();

 private:
  const Cuda* cuda_;  // null: nothing to restore
  int mode_;
};

// Makes a GPU's primary context current in this thread, as long as it lives. Of a GPU that is in
// use only: another's would have to be made, which takes long.
class ContextScope {
 public:
  static Outcome<ContextScope> enter(const Cuda& cuda, Ordinal ordinal);
  ContextScope(ContextScope&& other) noexcept
      : capture_(std::move(other.capture_)),
        cuda_(std::exchange(other.cuda_, nullptr)),
        ordinal_(other.ordinal_) {}
  ContextScope& operator=(ContextScope&&) = delete;
  ~ContextScope();

 private:
  ContextScope(const Cuda& cuda, Ordinal ordinal, OutOfCapture capture) noexcept
      : capture_(std::move(capture)), cuda_(&cuda), ordinal_(ordinal) {}

  OutOfCapture capture_;
  const Cuda* cuda_;
  Ordinal ordinal_;
};

// Lifecycle: made, used and freed within a ContextScope.
class Memory {
 public:
  static Outcome<Memory> allocate(const Cuda& cuda, std::size_t bytes);
  Memory(Memory&& other) noexcept
      : cuda_(other.cuda_),
        address_(std::exchange(other.address_, 0)),
        size_(other.size_),
        stream_(std::exchange(other.stream_, nullptr)) {}
  Memory& operator=(Memory&&) = delete;
  ~Memory();

  void* data() const noexcept { return reinterpret_cast<void*>(address_); }
  std::size_t size() const noexcept { return size_; }

  // `bytes` from its start. Done when they return.
  Outcome<void> write(const void* from, std::size_t bytes);
  Outcome<void> read(void* to, std::size_t bytes);

 private:
  Memory(const Cuda& cuda, std::size_t size) noexcept : cuda_(&cuda), size_(size) {}

  const Cuda* cuda_;
  DevicePtr address_ = 0;
  std::size_t size_;
  Stream* stream_ = nullptr;
};

// A dma-buf of exactly these pages: byte 0 of it is at `start`. Both are multiples of the host's
// page.
Outcome<UniqueFd> export_dmabuf(const Cuda& cuda, const Gpu& gpu, std::uintptr_t start,
                                std::size_t bytes);

}  // namespace beeline::gpu
