// SPDX-License-Identifier: Apache-2.0
//
// GPU memory that the plugin allocates, and copies to and from it that do not disturb the
// application: they neither wait for other streams nor delay them, and the thread's current context
// is restored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/fd.h"
#include "common/gpu/gpu.h"

namespace beeline::gpu {

// As long as it exists, this thread's calls do not interfere with a graph that another thread
// captures. Without it, a call that allocates would fail during a capture, and could invalidate it.
class OutsideCapture {
 public:
  explicit OutsideCapture(const Cuda& cuda) noexcept;
  OutsideCapture(OutsideCapture&& other) noexcept
      : cuda_(std::exchange(other.cuda_, nullptr)), mode_(other.mode_) {}
  OutsideCapture& operator=(OutsideCapture&&) = delete;
  ~OutsideCapture();

 private:
  const Cuda* cuda_;  // null: nothing to restore
  int mode_;
};

// Makes a GPU's primary context current in this thread as long as it exists. Only for a GPU that is
// in use: for another one, the driver would create the context, which takes long.
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
  ContextScope(const Cuda& cuda, Ordinal ordinal, OutsideCapture capture) noexcept
      : capture_(std::move(capture)), cuda_(&cuda), ordinal_(ordinal) {}

  OutsideCapture capture_;
  const Cuda* cuda_;
  Ordinal ordinal_;
};

// GPU memory and a stream for copies. Lifecycle: within a ContextScope.
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

  // Copies `bytes` at its start. The copy is complete when they return.
  Outcome<void> write(const void* from, std::size_t bytes);
  Outcome<void> read(void* to, std::size_t bytes);

 private:
  Memory(const Cuda& cuda, std::size_t size) noexcept : cuda_(&cuda), size_(size) {}

  const Cuda* cuda_;
  DevicePtr address_ = 0;
  std::size_t size_;
  Stream* stream_ = nullptr;
};

// A dma-buf of exactly these pages: its byte 0 is at `start`. Both numbers are multiples of the
// host's page size.
Outcome<UniqueFd> export_dmabuf(const Cuda& cuda, const Gpu& gpu, std::uintptr_t start,
                                std::size_t bytes);

}  // namespace beeline::gpu
