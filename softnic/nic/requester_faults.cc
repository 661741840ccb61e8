// SPDX-License-Identifier: Apache-2.0
// Requester's handling of port and device faults.
#include "common/base/clock.h"
#include "softnic/fabric/fabric_log.h"
#include "softnic/nic/qp.h"
#include "softnic/nic/requester.h"
#include "softnic/spec/wc_status.h"

namespace softnic {
namespace {

using Verdict = Answer::Verdict;

// Decrements an armed countdown. Returns true if it reached 0.
bool count_down(Shared<std::uint64_t>& countdown) {
  std::uint64_t left = countdown.load();
  while (left != 0) {
    if (countdown.compare_exchange(left, left - 1)) return left == 1;
  }
  return false;
}

}  // namespace

// Whether the device was removed after the queue pair was set up.
bool Requester::is_device_removed() const noexcept {
  const DeviceRecord& device = qp_.runtime().header().devices[qp_.device()];
  return device.removals.load(std::memory_order_relaxed) !=
         qp_.record().removals.load(std::memory_order_relaxed);
}

// Returns when to check again if a port is paused. A pause also extends a timeout that is running.
std::optional<std::int64_t> Requester::check_pause() {
  if ((route_.faults() & kFaultPaused) == 0 && paused_since_ == 0) [[likely]]
    return std::nullopt;
  const std::int64_t now = beeline::now_ns();
  const auto again = route_.paused_until(now);
  if (again) {
    if (paused_since_ == 0) paused_since_ = now;
    return again;
  }
  if (paused_since_ != 0 && waiting_until_ != 0) waiting_until_ += now - paused_since_;
  paused_since_ = 0;
  return std::nullopt;
}

// Applies the faults of the ports to a piece. kPlaced: the piece is sent, and `delivery` says
// whether it and its answer arrive.
Answer Requester::apply_port_faults(std::uint32_t faults, SendWqe& wqe, Delivery& delivery) {
  if ((faults & (kFaultError | kFaultCorrupt | kFaultDiscard)) != 0 && !wqe.counted) {
    const Answer fault = apply_armed_faults(wqe);
    if (fault.verdict != Verdict::kPlaced) return fault;
  }
  if ((faults & (kFaultDown | kFaultRemoved | kFaultBlackHole)) != 0) return {Verdict::kNoAnswer};
  if ((faults & kFaultLossy) != 0) delivery = draw_delivery(wqe.length);
  return {delivery == Delivery::kLost ? Verdict::kNoAnswer : Verdict::kPlaced};
}

// Decides at random whether the next piece and its answer are lost.
Requester::Delivery Requester::draw_delivery(std::uint64_t length) {
  if (route_.loses(length) || random_.happens(route_.sent_loss_ppm())) return Delivery::kLost;
  return random_.happens(route_.answer_loss_ppm()) ? Delivery::kAnswerLost : Delivery::kArrives;
}

bool Requester::has_taken(std::uint64_t sequence, std::uint64_t end) const noexcept {
  if (!taken_ || sequence > taken_->sequence) return false;
  return sequence < taken_->sequence || end <= taken_->end;
}

Answer Requester::apply_armed_faults(SendWqe& wqe) {
  wqe.counted = true;
  PortRecord& port = route_.local();
  const std::uint32_t faults = port.faults.load();
  if ((faults & kFaultCorrupt) != 0 && wqe.length != 0 && count_down(port.corrupt_countdown)) {
    port.faults.fetch_and(~std::uint32_t{kFaultCorrupt});
    wqe.corrupt = true;
    log_armed_fault(wqe, "corrupt");
  }
  if ((faults & kFaultDiscard) != 0 && !is_read_or_atomic(wqe.opcode) && wqe.length != 0 &&
      wqe.length <= port.discard_bytes.load() && count_down(port.discard_countdown)) {
    port.faults.fetch_and(~std::uint32_t{kFaultDiscard});
    wqe.discard = true;
    log_armed_fault(wqe, "discard");
  }
  if ((faults & kFaultError) != 0 && count_down(port.error_countdown)) {
    port.faults.fetch_and(~std::uint32_t{kFaultError});
    const std::uint32_t status = port.error_status.load();
    log_armed_fault(wqe, "error=" + wc_status_name(status));
    return {Verdict::kRefused, static_cast<ibv_wc_status>(status)};
  }
  return {Verdict::kPlaced};
}

void Requester::log_armed_fault(const SendWqe& wqe, const std::string& fault) {
  const PortRef where{qp_.device(), qp_.attr().ah_attr.port_num - 1u};
  log_port(qp_.runtime().fabric(), where,
           fault + " hits queue pair " + std::to_string(qp_.qp_num()) + ", wr_id " +
               std::to_string(wqe.wr_id));
}

}  // namespace softnic
