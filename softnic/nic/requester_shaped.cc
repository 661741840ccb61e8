// SPDX-License-Identifier: Apache-2.0
// Requester's mode for shaped ports, with pieces in flight.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "common/base/clock.h"
#include "softnic/nic/qp.h"
#include "softnic/nic/requester.h"
#include "softnic/nic/wire.h"

namespace softnic {
namespace {

using Verdict = Answer::Verdict;

constexpr std::uint64_t kMinShapedPiece = 4096;
constexpr std::uint64_t kMaxShapedPiece = 64 << 10;
// Pieces are handed to the wire this long before it is free.
constexpr std::int64_t kSendAheadNs = 300 * beeline::kNsPerUs;
constexpr std::size_t kMaxInFlight = 256;
constexpr std::int64_t kMaxShapedSleepNs = 20 * beeline::kNsPerMs;

std::uint64_t shaped_piece_bytes(const PortRecord& port) {
  const std::uint64_t rate = port.rate_bytes_s.load();
  // About one millisecond of the wire's time, so that a slow wire is shared evenly.
  return rate == 0 ? kMaxShapedPiece : std::clamp(rate / 1000, kMinShapedPiece, kMaxShapedPiece);
}

std::array<std::uint64_t, 3> settings_of(const PortRecord& port) noexcept {
  return {port.rate_bytes_s.load(), port.latency_ns.load(), port.jitter_ns.load()};
}

}  // namespace

// in_flight_ holds pieces that have arrived and wait for their acknowledgement, then pieces on
// their way, oldest first. A piece that could arrive before an older one waits for it, because
// messages of a connection arrive in order. If a piece is not placed, in_flight_ is emptied and
// run() decides how to go on.
std::optional<std::int64_t> Requester::run_shaped(std::int64_t now, Budget& budget) {
  send_pieces(now);
  while (take_acknowledgement(now) || deliver_next(now, budget)) {
  }
  if (waiting_until_ != 0 || qp_.state() == IBV_QPS_ERR || !can_run()) return std::nullopt;
  if (budget.messages == 0) return now;
  send_pieces(now);
  if (waiting_until_ != 0 || !can_run()) return std::nullopt;
  const std::int64_t event =
      in_flight_.empty() ? wire_free_at_ - kSendAheadNs / 2 : next_shaped_event(now);
  // The rate or latency may change, so the wait is limited.
  return std::min(event, now + kMaxShapedSleepNs);
}

void Requester::send_pieces(std::int64_t now) {
  const bool has_route = route_.refresh(qp_.runtime(), qp_.attr(), qp_.device(), qp_.qp_num());
  resend_if_changed(has_route);
  if (in_flight_.empty()) {
    send_sequence_ = next();
    send_offset_ = offset_;
  }
  if (!has_route) {
    if (in_flight_.empty() && waiting_until_ == 0 && can_run())
      handle_answer({Verdict::kNoAnswer}, 0);
    return;
  }
  while (send_sequence_ < end_of_work() && wire_free_at_ <= now + kSendAheadNs &&
         in_flight_.size() < kMaxInFlight) {
    send_piece(now);
  }
}

void Requester::send_piece(std::int64_t now) {
  PortRecord& local = route_.local();
  PortRecord& remote = route_.remote();
  const SendWqe& wqe = queue_.at(send_sequence_);
  const std::uint64_t bytes =
      std::min({wqe.length - send_offset_, shaped_piece_bytes(local), shaped_piece_bytes(remote)});
  const bool reading = is_read_or_atomic(wqe.opcode);
  const std::int64_t ready_at =
      wqe.posted_at == 0 ? now : std::max(wqe.posted_at, now - kWirePatienceNs);
  wire_free_at_ = reading ? reserve_both_wires(remote, local, bytes, ready_at)
                          : reserve_both_wires(local, remote, bytes, ready_at);
  const auto latency =
      static_cast<std::int64_t>(local.latency_ns.load() + remote.latency_ns.load());
  const std::uint64_t jitter = local.jitter_ns.load() + remote.jitter_ns.load();
  if (send_offset_ == 0) {
    send_jitter_ = jitter == 0 ? 0 : static_cast<std::int64_t>(random_.up_to(jitter));
  }
  // The data of a READ comes with the response, which also acknowledges it.
  const std::int64_t arrives_at = wire_free_at_ + (reading ? 2 * latency : latency) + send_jitter_;
  in_flight_.push_back({send_sequence_, send_offset_, bytes, arrives_at,
                        reading ? arrives_at : arrives_at + latency});
  send_offset_ += bytes;
  if (send_offset_ == wqe.length) {
    ++send_sequence_;
    send_offset_ = 0;
  }
}

// Pieces that have not arrived are sent again by the new settings. Commands to other ports change
// nothing: the time of the wire that was reserved for the pieces would be lost each time.
void Requester::resend_if_changed(bool has_route) {
  const std::uint32_t generation = qp_.runtime().header().generation.load();
  if (generation == send_generation_) return;
  send_generation_ = generation;
  Shape shape;
  if (has_route) {
    shape = {.local = &route_.local(),
             .remote = &route_.remote(),
             .ours = settings_of(route_.local()),
             .theirs = settings_of(route_.remote())};
  }
  if (std::exchange(shape_, shape) == shape) return;
  wire_free_at_ = 0;
  if (arrived_ == in_flight_.size()) return;
  send_sequence_ = in_flight_[arrived_].sequence;
  send_offset_ = in_flight_[arrived_].offset;
  in_flight_.resize(arrived_);
}

bool Requester::deliver_next(std::int64_t now, Budget& budget) {
  if (arrived_ == in_flight_.size() || in_flight_[arrived_].arrives_at > now) return false;
  if (check_pause()) return false;  // run() is called again later
  if (budget.messages == 0) return false;
  --budget.messages;
  const InFlightPiece piece = in_flight_[arrived_];
  const Answer answer =
      transfer_piece(queue_.at(piece.sequence), piece.sequence, piece.offset, piece.bytes);
  if (answer.verdict == Verdict::kPlaced) {
    const bool reading = is_read_or_atomic(queue_.at(piece.sequence).opcode);
    (reading ? route_.remote() : route_.local()).sent_bytes.fetch_add(piece.bytes);
    ++arrived_;
    return true;
  }
  // This answer acknowledges the pieces before it; the pieces after it have to be sent again.
  while (arrived_ != 0) (void)take_acknowledgement(in_flight_.front().acked_at);
  drop_in_flight();
  handle_answer(answer, 0);
  return false;
}

bool Requester::take_acknowledgement(std::int64_t now) {
  if (arrived_ == 0 || in_flight_.front().acked_at > now) return false;
  const std::uint64_t bytes = in_flight_.front().bytes;
  in_flight_.pop_front();
  --arrived_;
  handle_answer({Verdict::kPlaced}, bytes);
  return true;
}

std::int64_t Requester::next_shaped_event(std::int64_t now) const {
  std::int64_t event = std::numeric_limits<std::int64_t>::max();
  if (arrived_ != 0) event = in_flight_.front().acked_at;
  if (arrived_ != in_flight_.size()) event = std::min(event, in_flight_[arrived_].arrives_at);
  if (route_.has_peer() && send_sequence_ < end_of_work() && in_flight_.size() < kMaxInFlight) {
    event = std::min(event, std::max(now, wire_free_at_ - kSendAheadNs / 2));
  }
  return event;
}

void Requester::drop_in_flight() {
  in_flight_.clear();
  arrived_ = 0;
}

}  // namespace softnic
