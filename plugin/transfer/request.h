// SPDX-License-Identifier: Apache-2.0
//
// The request that isend, irecv and iflush return to NCCL and that test finishes. It is one cache
// line, from a pool of the comm: nothing is allocated after connect.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "plugin/wire/limits.h"

namespace beeline {

class Comm;
struct MemoryHandle;

// What a sender needs to send a message again.
struct SendSource {
  std::uint64_t address;
  const MemoryHandle* memory;
};

struct alignas(64) Request {
  Comm* comm = nullptr;
  Request* next = nullptr;   // in FreeRequests, or among those that complete together (HeldSends)
  std::uint32_t line = 0;    // position of its (first) credit line
  std::uint16_t slot = 0;    // in its pool
  std::uint8_t count = 0;    // buffers: 1 for a send; 0 while the slot is free
  std::uint8_t missing = 0;  // send: completions to come; receive: buffers to arrive
  std::uint16_t wrs = 0;     // send: work requests to give back to the queue
  std::uint8_t split = 0;    // send: its record in SplitMessages, plus 1; 0: one path carries it
  std::uint8_t path = 0;     // send: that carries it, if one path does
  std::array<std::uint32_t, wire::kMaxReceives> sizes{};  // bytes, as test reports them

  // A send has one size. The source of its data is kept in place of the others.
  void keep_source(const SendSource& source) noexcept {
    std::memcpy(&sizes[1], &source, sizeof source);
  }
  SendSource source() const noexcept {
    SendSource source;
    std::memcpy(&source, &sizes[1], sizeof source);
    return source;
  }
};
static_assert(sizeof(Request) == 64);

// A stack: the request that was used last is likely still in the cache.
class FreeRequests {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  // For both, empty() must be false. take() gives the first.
  Request& first() noexcept { return *first_; }
  Request& take() noexcept {
    Request& taken = *first_;
    first_ = taken.next;
    return taken;
  }
  void give_back(Request& request) noexcept {
    request.count = 0;
    request.next = first_;
    first_ = &request;
  }

 private:
  Request* first_ = nullptr;
};

template <std::size_t N>
class RequestPool {
 public:
  RequestPool(Comm& comm, FreeRequests& free) noexcept {
    for (std::size_t i = N; i-- > 0;) {
      slots_[i].comm = &comm;
      slots_[i].slot = static_cast<std::uint16_t>(i);
      free.give_back(slots_[i]);
    }
  }

  Request& operator[](std::size_t slot) noexcept { return slots_[slot]; }
  auto begin() noexcept { return slots_.begin(); }
  auto end() noexcept { return slots_.end(); }

 private:
  std::array<Request, N> slots_;
};

}  // namespace beeline
