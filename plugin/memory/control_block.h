// SPDX-License-Identifier: Apache-2.0
//
// Memory of the plugin that NICs write to: credits and notices. It is page-aligned, zeroed, and
// registered with strict ordering, once in each rail's protection domain. It is not registered
// through the cache, so that its keys give access to nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/check/assert.h"
#include "plugin/verbs/create.h"

namespace beeline {

// Lifecycle: destroyed before the protection domains in which it is registered.
// Threads: attach() in one thread; afterwards any thread may read the keys.
class ControlBlock {
 public:
  ControlBlock() noexcept = default;  // empty
  // The size is rounded up to pages. A forked child does not inherit the memory.
  static Result<ControlBlock> create(std::size_t bytes);
  ControlBlock(ControlBlock&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        regions_(std::move(other.regions_)) {}
  ControlBlock& operator=(ControlBlock other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(regions_, other.regions_);
    return *this;
  }
  ~ControlBlock() { free(); }

  // Registers it in one more domain, whose keys have the next index. By default the peer may write.
  Status attach(const verbs::Api& api, ibv_pd* pd,
                unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  // The same with a given index. Indices that are left out have no keys.
  Status attach_rail(std::size_t rail, const verbs::Api& api, ibv_pd* pd, unsigned access);

  void* data() const noexcept { return data_; }
  template <class T>
  T* at(std::size_t offset = 0) const noexcept {
    return reinterpret_cast<T*>(static_cast<std::byte*>(data_) + offset);
  }
  std::uint64_t address() const noexcept { return reinterpret_cast<std::uint64_t>(data_); }
  std::size_t size() const noexcept { return size_; }

  std::size_t rails() const noexcept { return regions_.size(); }
  bool has_rail(std::size_t rail) const noexcept { return rail < rails() && regions_[rail]; }
  std::uint32_t lkey(std::size_t rail) const noexcept { return region(rail).lkey; }
  std::uint32_t rkey(std::size_t rail) const noexcept { return region(rail).rkey; }

 private:
  ControlBlock(void* data, std::size_t size) noexcept : data_(data), size_(size) {}
  void free() noexcept;
  const ibv_mr& region(std::size_t rail) const noexcept {
    BL_ASSERT(has_rail(rail), "the memory is registered for the rail");
    return *regions_[rail].get();
  }

  void* data_ = nullptr;
  std::size_t size_ = 0;
  std::vector<verbs::Mr> regions_;
};

}  // namespace beeline
