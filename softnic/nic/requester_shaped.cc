// SPDX-License-Identifier: Apache-2.0
// The requester's gait on shaped ports: pieces of messages that fly.
#include <algorithm>
#include <limits>

#include "common/base/clock.h"
#include "softnic/nic/qp.h"
#include "softnic/nic/requester.h"
#include "softnic/nic/wire.h"

namespace softnic {
namespace {

using Verdict = Answer::Verdict;

constexpr std::uint64_t kMinShapedPiece = 4096;
constexpr std::uint64_t kMaxShapedPiece = 64 << 10;
// How far ahead of the wire pieces are launched.
constexpr std::int64_t kLaunchAheadNs = 300 * beeline::kNsPerUs;
constexpr std::size_t kMaxFlights = 256;
constexpr std::int64_t kMaxShapedSleepNs = 20 * beeline::kNsPerMs;

std::uint64_t shaped_piece_bytes(const PortRecord& port) {
  const std::uint64_t rate = port.rate_bytes_s.load();
  // About a millisecond's worth, so that a slow wire is shared evenly.
  return rate == 0 ? kMaxShapedPiece : std::clamp(rate / 1000, kMinShapedPiece, kMaxShapedPiece);
}

}  // namespace

// flights_ holds [landed, waiting for their acknowledgement | on their way], oldest first: who
// could land before an older one waits for it, so that nobody overtakes on one connection. An
// acknowledgement finishes the first; a landing moves the border; a launch appends. Whatever is not
// an answer empties it, and run() decides what then.
std::optional<std::int64_t> Requester::run_shaped(std::int64_t now, Budget& budget) {
  launch(now);
  while (take_acknowledgement(now) || land_next(now, budget)) {
  }
  if (waiting_until_ != 0 || qp_.state() == IBV_QPS_ERR || !can_run()) return std::nullopt;
  if (budget.messages == 0) return now;
  launch(now);
  if (waiting_until_ != 0 || !can_run()) return std::nullopt;
  const std::int64_t event =
      flights_.empty() ? wire_free_at_ - kLaunchAheadNs / 2 : next_shaped_event(now);
  // Looks up now and then: the shape may have changed.
  return std::min(event, now + kMaxShapedSleepNs);
}

void Requester::launch(std::int64_t now) {
  relaunch_if_changed();
  if (flights_.empty()) {
    launch_sequence_ = next();
    launch_offset_ = offset_;
  }
  if (!path_.refresh(qp_.runtime(), qp_.attr(), qp_.device(), qp_.qp_num())) {
    if (flights_.empty() && waiting_until_ == 0 && can_run()) settle({Verdict::kSilence}, 0);
    return;
  }
  while (launch_sequence_ < end_of_work() && wire_free_at_ <= now + kLaunchAheadNs &&
         flights_.size() < kMaxFlights) {
    launch_piece(now);
  }
}

void Requester::launch_piece(std::int64_t now) {
  PortRecord& local = path_.local();
  PortRecord& remote = path_.remote();
  const SendWqe& wqe = queue_.at(launch_sequence_);
  const std::uint64_t bytes = std::min(
      {wqe.length - launch_offset_, shaped_piece_bytes(local), shaped_piece_bytes(remote)});
  const bool reading = brings_data_back(wqe.opcode);
  const std::int64_t ready_at =
      wqe.posted_at == 0 ? now : std::max(wqe.posted_at, now - kWirePatienceNs);
  wire_free_at_ = reading ? reserve_both_wires(remote, local, bytes, ready_at)
                          : reserve_both_wires(local, remote, bytes, ready_at);
  const auto latency =
      static_cast<std::int64_t>(local.latency_ns.load() + remote.latency_ns.load());
  const std::uint64_t jitter = local.jitter_ns.load() + remote.jitter_ns.load();
  if (launch_offset_ == 0) {
    launch_jitter_ = jitter == 0 ? 0 : static_cast<std::int64_t>(chance_.up_to(jitter));
  }
  // A READ's data comes with the answer; there is nothing to acknowledge after that.
  const std::int64_t lands_at = wire_free_at_ + (reading ? 2 * latency : latency) + launch_jitter_;
  flights_.push_back(
      {launch_sequence_, launch_offset_, bytes, lands_at, reading ? lands_at : lands_at + latency});
  launch_offset_ += bytes;
  if (launch_offset_ == wqe.length) {
    ++launch_sequence_;
    launch_offset_ = 0;
  }
}

// After a command to a port, what has not landed yet flies by the new rules.
void Requester::relaunch_if_changed() {
  const std::uint32_t generation = qp_.runtime().header().generation.load();
  if (generation == launch_generation_) return;
  launch_generation_ = generation;
  wire_free_at_ = 0;
  if (landed_ == flights_.size()) return;
  launch_sequence_ = flights_[landed_].sequence;
  launch_offset_ = flights_[landed_].offset;
  flights_.resize(landed_);
}

bool Requester::land_next(std::int64_t now, Budget& budget) {
  if (landed_ == flights_.size() || flights_[landed_].lands_at > now) return false;
  if (hold_still()) return false;  // in the air; run() comes again
  if (budget.messages == 0) return false;
  --budget.messages;
  const Flight flight = flights_[landed_];
  const Answer answer =
      carry(queue_.at(flight.sequence), flight.sequence, flight.offset, flight.bytes);
  if (answer.verdict == Verdict::kPlaced) {
    ++landed_;
    return true;
  }
  // What was placed before is acknowledged by this answer; what follows has to fly again.
  while (landed_ != 0) (void)take_acknowledgement(flights_.front().acked_at);
  abandon_flights();
  settle(answer, 0);
  return false;
}

bool Requester::take_acknowledgement(std::int64_t now) {
  if (landed_ == 0 || flights_.front().acked_at > now) return false;
  const std::uint64_t bytes = flights_.front().bytes;
  flights_.pop_front();
  --landed_;
  settle({Verdict::kPlaced}, bytes);
  return true;
}

std::int64_t Requester::next_shaped_event(std::int64_t now) const {
  std::int64_t event = std::numeric_limits<std::int64_t>::max();
  if (landed_ != 0) event = flights_.front().acked_at;
  if (landed_ != flights_.size()) event = std::min(event, flights_[landed_].lands_at);
  if (path_.known() && launch_sequence_ < end_of_work() && flights_.size() < kMaxFlights) {
    event = std::min(event, std::max(now, wire_free_at_ - kLaunchAheadNs / 2));
  }
  return event;
}

void Requester::abandon_flights() {
  flights_.clear();
  landed_ = 0;
}

}  // namespace softnic
