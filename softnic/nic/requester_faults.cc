// SPDX-License-Identifier: Apache-2.0
// What faults of ports and devices mean for the requester.
#include "common/base/clock.h"
#include "softnic/fabric/fabric_log.h"
#include "softnic/nic/qp.h"
#include "softnic/nic/requester.h"
#include "softnic/spec/wc_status.h"

namespace softnic {
namespace {

using Verdict = Answer::Verdict;

// True if this request is the one an armed countdown was waiting for.
bool counts_down_to_zero(Shared<std::uint64_t>& countdown) {
  std::uint64_t left = countdown.load();
  while (left != 0) {
    if (countdown.compare_exchange(left, left - 1)) return left == 1;
  }
  return false;
}

}  // namespace

// The device was taken out of the machine, and whoever had it open sees no more of it.
bool Requester::unplugged() const noexcept {
  const DeviceRecord& device = qp_.runtime().header().devices[qp_.device()];
  return device.removals.load(std::memory_order_relaxed) !=
         qp_.record().removals.load(std::memory_order_relaxed);
}

// A port that is paused stops the clock of the waiting, too. Returns when to look again, or
// nothing if things move.
std::optional<std::int64_t> Requester::hold_still() {
  if ((path_.trouble() & kTroubleStill) == 0 && still_since_ == 0) [[likely]]
    return std::nullopt;
  const std::int64_t now = beeline::now_ns();
  const auto again = path_.still_until(now);
  if (again) {
    if (still_since_ == 0) still_since_ = now;
    return again;
  }
  if (still_since_ != 0 && waiting_until_ != 0) waiting_until_ += now - still_since_;
  still_since_ = 0;
  return std::nullopt;
}

// What stands in a piece's way. kPlaced: nothing does, and `journey` says how it will go.
Answer Requester::meet_trouble(std::uint32_t trouble, SendWqe& wqe, Journey& journey) {
  if ((trouble & (kTroubleError | kTroubleCorrupt)) != 0 && !wqe.counted) {
    const Answer fault = apply_armed_faults(wqe);
    if (fault.verdict != Verdict::kPlaced) return fault;
  }
  if ((trouble & (kTroubleDown | kTroubleGone | kTroubleHole)) != 0) return {Verdict::kSilence};
  if ((trouble & kTroubleLossy) != 0) journey = draw_journey();
  return {journey == Journey::kLostOnTheWay ? Verdict::kSilence : Verdict::kPlaced};
}

// What a lossy port does to the next piece, and to its answer.
Requester::Journey Requester::draw_journey() {
  if (chance_.happens(path_.loss_ppm())) return Journey::kLostOnTheWay;
  return chance_.happens(path_.loss_ppm()) ? Journey::kAnswerLost : Journey::kArrives;
}

bool Requester::has_taken(std::uint64_t sequence, std::uint64_t end) const noexcept {
  if (!taken_ || sequence > taken_->sequence) return false;
  return sequence < taken_->sequence || end <= taken_->end;
}

Answer Requester::apply_armed_faults(SendWqe& wqe) {
  wqe.counted = true;
  PortRecord& port = path_.local();
  const std::uint32_t trouble = port.trouble.load();
  if ((trouble & kTroubleCorrupt) != 0 && wqe.length != 0 &&
      counts_down_to_zero(port.corrupt_countdown)) {
    port.trouble.fetch_and(~std::uint32_t{kTroubleCorrupt});
    wqe.corrupt = true;
    note_strike(wqe, "corrupt");
  }
  if ((trouble & kTroubleError) != 0 && counts_down_to_zero(port.error_countdown)) {
    port.trouble.fetch_and(~std::uint32_t{kTroubleError});
    const std::uint32_t status = port.error_status.load();
    note_strike(wqe, "error=" + wc_status_name(status));
    return {Verdict::kRefused, static_cast<ibv_wc_status>(status)};
  }
  return {Verdict::kPlaced};
}

void Requester::note_strike(const SendWqe& wqe, const std::string& fault) {
  const PortRef where{qp_.device(), qp_.attr().ah_attr.port_num - 1u};
  note(qp_.runtime().fabric(), where,
       fault + " strikes queue pair " + std::to_string(qp_.qp_num()) + ", wr_id " +
           std::to_string(wqe.wr_id));
}

}  // namespace softnic
