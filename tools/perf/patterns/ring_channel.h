// SPDX-License-Identifier: Apache-2.0
//
// One channel of a ring all-reduce on one rank: 2(N-1) steps of slices, first adding up (received
// slices go to scratch memory and are added on), then passing results on (received in place).
//
// Slices are numbered through all steps. Slice k is sent once slice k - slices() has arrived and
// been worked in: that is the same piece of data, one step earlier.
#pragma once

#include <cstdint>

#include "tools/perf/comms.h"
#include "tools/perf/patterns/ring_layout.h"

namespace beeline::perf {

// A buffer and its registrations: what is sent and what is received goes over different comms.
struct RingMemory {
  const Buffer* buffer = nullptr;
  void* send_mr = nullptr;
  void* recv_mr = nullptr;
};

class RingChannel {
 public:
  struct Parts {
    size_t channel = 0;
    SendEnd* send = nullptr;
    RecvEnd* recv = nullptr;
    RingMemory source = {};   // what this rank puts in
    RingMemory result = {};   // what comes out
    RingMemory scratch = {};  // `depth` slices
    size_t depth = 1;
  };

  RingChannel(const RingLayout& layout, size_t rank, size_t ranks, const Parts& parts)
      : layout_(layout), rank_(rank), ranks_(ranks), parts_(parts) {}

  // `at` is the offset of this all-reduce's data in source and result.
  void begin(size_t at) noexcept {
    at_ = at;
    posted_recvs_ = arrived_ = posted_sends_ = sent_ = 0;
  }
  bool done() const noexcept { return arrived_ == slices_in_all() && sent_ == slices_in_all(); }
  // One try at each thing there is to do; true when one worked.
  NetResult<bool> step();

 private:
  std::uint64_t slices_in_all() const noexcept { return 2 * (ranks_ - 1) * layout_.slices(); }
  bool adds_up(std::uint64_t k) const noexcept { return k / layout_.slices() + 1 < ranks_; }
  // The offset in source and result.
  Piece sent_piece(std::uint64_t k) const noexcept;
  Piece received_piece(std::uint64_t k) const noexcept;
  Piece placed(Piece piece) const noexcept { return {at_ + piece.at, piece.size}; }
  bool may_receive(std::uint64_t k) const noexcept;

  Piece scratch_piece(std::uint64_t k) const noexcept {
    return {k % parts_.depth * layout_.slice_bytes(), received_piece(k).size};
  }

  NetResult<void> add_up(std::uint64_t k);
  NetResult<bool> try_receive();
  NetResult<bool> try_arrive();
  NetResult<bool> try_send();

  const RingLayout& layout_;
  const size_t rank_;
  const size_t ranks_;
  const Parts parts_;
  size_t at_ = 0;
  std::uint64_t posted_recvs_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t posted_sends_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace beeline::perf
