// SPDX-License-Identifier: Apache-2.0
//
// What NCCL holds between isend or irecv and the test that says "done": one cache line, from a pool
// that belongs to the comm. Nothing is allocated after connect.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plugin/wire/limits.h"

namespace beeline {

class Comm;

struct alignas(64) Request {
  Comm* comm = nullptr;
  std::uint32_t line = 0;    // position of its (first) credit line
  std::uint16_t slot = 0;    // in its pool
  std::uint8_t count = 0;    // buffers: 1 for a send; 0 while the slot is free
  std::uint8_t missing = 0;  // send: completions to come; receive: buffers to arrive
  std::uint16_t wrs = 0;     // send: work requests to give back to the queue
  std::array<std::uint32_t, wire::kMaxReceives> sizes{};  // bytes, as test reports them
};
static_assert(sizeof(Request) == 64);

template <std::size_t N>
class RequestPool {
  static_assert(N <= 256);  // a slot is named by a byte

 public:
  explicit RequestPool(Comm& comm) noexcept {
    for (std::size_t i = 0; i < N; ++i) {
      slots_[i].comm = &comm;
      slots_[i].slot = static_cast<std::uint16_t>(i);
      free_[i] = static_cast<std::uint8_t>(N - 1 - i);
    }
  }

  bool empty() const noexcept { return free_count_ == 0; }
  // Only when not empty(). The slot used last comes first: it is still in the cache.
  Request& take() noexcept { return slots_[free_[--free_count_]]; }
  void give_back(Request& request) noexcept {
    request.count = 0;
    free_[free_count_++] = static_cast<std::uint8_t>(request.slot);
  }

  Request& operator[](std::size_t slot) noexcept { return slots_[slot]; }
  auto begin() noexcept { return slots_.begin(); }
  auto end() noexcept { return slots_.end(); }

 private:
  std::array<Request, N> slots_;
  std::array<std::uint8_t, N> free_;
  std::size_t free_count_ = N;
};

}  // namespace beeline
