// SPDX-License-Identifier: Apache-2.0
//
// One channel of a ring all-reduce on one rank, in 2(N-1) steps. In the first half
// (reduce-scatter), received slices go to scratch memory and are added. In the second half
// (all-gather), they are received in place.
//
// Slices are numbered across all steps. Slice k is sent when slice k - slices() has been received
// and processed: that is the same piece of data in the previous step.
#pragma once

#include <cstdint>

#include "tools/perf/comms.h"
#include "tools/perf/patterns/ring_layout.h"

namespace beeline::perf {

// A buffer and its two registrations, because sends and receives use different comms.
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

  // `at` is the offset of this all-reduce's data in the source and in the result.
  void begin(size_t at) noexcept {
    at_ = at;
    posted_recvs_ = arrived_ = posted_sends_ = sent_ = 0;
  }
  bool done() const noexcept { return arrived_ == slices_in_all() && sent_ == slices_in_all(); }
  // Tries each possible operation once. True if one of them succeeded.
  NetResult<bool> step();

 private:
  std::uint64_t slices_in_all() const noexcept { return 2 * (ranks_ - 1) * layout_.slices(); }
  bool adds_up(std::uint64_t k) const noexcept { return k / layout_.slices() + 1 < ranks_; }
  // The offset in the source and in the result.
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
