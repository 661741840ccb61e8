// SPDX-License-Identifier: Apache-2.0
//
// Memory of our own that NICs write to: credits, notices. Page-aligned, zeroed, and registered
// strictly ordered, once with each rail's protection domain. Registered for itself and not through
// a cache, so that its keys open nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugin/verbs/create.h"

namespace beeline {

// Lifecycle: dies before the protection domains it was registered with.
// Threads: attach from one thread; the keys may be read from any afterwards.
class ControlBlock {
 public:
  ControlBlock() noexcept = default;  // holds nothing
  // Rounded up to pages. Not inherited by a forked child.
  static Result<ControlBlock> create(std::size_t bytes);
  ControlBlock(ControlBlock&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        regions_(std::move(other.regions_)) {}
  ControlBlock& operator=(ControlBlock&& other) noexcept;
  ~ControlBlock() { free(); }

  // Registers with one more domain; its keys have the next index. The default is what a block that
  // the peer writes needs.
  Status attach(const verbs::Api& api, ibv_pd* pd,
                unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

  void* data() const noexcept { return data_; }
  template <class T>
  T* at(std::size_t offset = 0) const noexcept {
    return reinterpret_cast<T*>(static_cast<std::byte*>(data_) + offset);
  }
  std::uint64_t address() const noexcept { return reinterpret_cast<std::uint64_t>(data_); }
  std::size_t size() const noexcept { return size_; }

  std::size_t rails() const noexcept { return regions_.size(); }
  std::uint32_t lkey(std::size_t rail) const noexcept { return regions_[rail]->lkey; }
  std::uint32_t rkey(std::size_t rail) const noexcept { return regions_[rail]->rkey; }

 private:
  ControlBlock(void* data, std::size_t size) noexcept : data_(data), size_(size) {}
  void free() noexcept;

  void* data_ = nullptr;
  std::size_t size_ = 0;
  std::vector<verbs::Mr> regions_;
};

}  // namespace beeline
