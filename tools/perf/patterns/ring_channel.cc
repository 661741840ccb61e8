// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/patterns/ring_channel.h"

#include "tools/perf/patterns/summands.h"

namespace beeline::perf {

// In step t, a rank sends chunk (rank - t) and receives chunk (rank - t - 1), modulo the number of
// ranks.
Piece RingChannel::sent_piece(std::uint64_t k) const noexcept {
  const std::uint64_t step = k / layout_.slices();
  return placed(
      layout_.slice(parts_.channel, (rank_ + 2 * ranks_ - step) % ranks_, k % layout_.slices()));
}

Piece RingChannel::received_piece(std::uint64_t k) const noexcept {
  const std::uint64_t step = k / layout_.slices();
  return placed(layout_.slice(parts_.channel, (rank_ + 2 * ranks_ - step - 1) % ranks_,
                              k % layout_.slices()));
}

// A result overwrites the partial sum that was sent N-1 steps earlier, so that send must be done.
bool RingChannel::may_receive(std::uint64_t k) const noexcept {
  if (adds_up(k)) return true;
  return sent_ > k - (ranks_ - 1) * layout_.slices();
}

NetResult<bool> RingChannel::step() {
  bool moved = false;
  if (BL_TRY(try_receive())) moved = true;
  if (BL_TRY(try_arrive())) moved = true;
  if (BL_TRY(try_send())) moved = true;
  if (BL_TRY(parts_.send->poll())) {
    ++sent_;
    moved = true;
  }
  return moved;
}

NetResult<bool> RingChannel::try_receive() {
  const std::uint64_t k = posted_recvs_;
  if (k == slices_in_all() || parts_.recv->full() || !may_receive(k)) return false;
  const Piece piece = received_piece(k);
  const RingMemory& memory = adds_up(k) ? parts_.scratch : parts_.result;
  const size_t place = adds_up(k) ? scratch_piece(k).at : piece.at;
  RecvGroup group;
  group.add(memory.buffer->address(place), piece.size, static_cast<int>(parts_.channel),
            memory.recv_mr);
  if (!BL_TRY(parts_.recv->post(group))) return false;
  ++posted_recvs_;
  return true;
}

NetResult<bool> RingChannel::try_arrive() {
  if (!BL_TRY(parts_.recv->poll())) return false;
  const std::uint64_t k = arrived_++;
  const Piece piece = received_piece(k);
  if (static_cast<size_t>(parts_.recv->sizes()[0]) != piece.size) {
    return fail(NetFailure{"test of a receive", ncclSuccess,
                           "the number of received bytes differs from the number of sent bytes",
                           parts_.recv});
  }
  if (adds_up(k)) BL_TRY(add_up(k));
  return true;
}

// A kernel of NCCL would add on the GPU; this program adds in the staging copies.
NetResult<void> RingChannel::add_up(std::uint64_t k) {
  const Piece piece = received_piece(k);
  const std::uint8_t* const arrived = BL_TRY(parts_.scratch.buffer->fetch(scratch_piece(k)));
  add_pieces(parts_.result.buffer->stage(piece.at), parts_.source.buffer->stage(piece.at), arrived,
             piece.size);
  return parts_.result.buffer->store(piece);
}

NetResult<bool> RingChannel::try_send() {
  const std::uint64_t k = posted_sends_;
  const std::uint64_t step = layout_.slices();
  if (k == slices_in_all() || (k >= step && arrived_ <= k - step)) return false;
  const Piece piece = sent_piece(k);
  const RingMemory& memory = k < step ? parts_.source : parts_.result;
  if (!BL_TRY(parts_.send->post(memory.buffer->address(piece.at), piece.size,
                                static_cast<int>(parts_.channel), memory.send_mr))) {
    return false;
  }
  ++posted_sends_;
  return true;
}

}  // namespace beeline::perf
