// SPDX-License-Identifier: Apache-2.0
//
// A queue that grows as needed, up to a limit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tests/support/nullverbs/arena.h"

namespace nullverbs {

// Threads: the one that holds its owner's lock.
template <class T>
class Ring {
 public:
  void set_limit(std::uint32_t most) noexcept { most_ = most; }
  std::uint32_t limit() const noexcept { return most_; }
  bool empty() const noexcept { return count_ == 0; }
  bool full() const noexcept { return count_ == most_; }
  std::uint32_t count() const noexcept { return count_; }

  // Only when not full().
  void push(const T& value) {
    if (count_ == room_) grow();
    slots_[(first_ + count_++) & (room_ - 1)] = value;
  }
  // Only when not empty().
  const T& pop() noexcept {
    const T& value = slots_[first_];
    first_ = (first_ + 1) & (room_ - 1);
    --count_;
    return value;
  }

  void clear() noexcept { count_ = 0; }
  void free() noexcept {
    Arena::instance().give_back(slots_, room_ * sizeof(T));
    slots_ = nullptr;
    room_ = first_ = count_ = 0;
  }

 private:
  static constexpr std::uint32_t kLeast = 8;  // a power of two

  void grow() {
    const std::uint32_t room = std::max(kLeast, 2 * room_);
    T* const slots = Arena::instance().take_array<T>(room);
    for (std::uint32_t i = 0; i < count_; ++i) slots[i] = slots_[(first_ + i) & (room_ - 1)];
    Arena::instance().give_back(slots_, room_ * sizeof(T));
    slots_ = slots;
    room_ = room;
    first_ = 0;
  }

  T* slots_ = nullptr;
  std::uint32_t room_ = 0;
  std::uint32_t first_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t most_ = 0;
};

}  // namespace nullverbs
