// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/requester.h"

#include <algorithm>

#include "common/base/clock.h"
#include "softnic/nic/deferred_writes.h"
#include "softnic/nic/fence.h"
#include "softnic/nic/mr.h"
#include "softnic/nic/qp.h"
#include "softnic/nic/timers.h"

namespace softnic {
namespace {

using Verdict = Answer::Verdict;

// States, keys and faults are checked again after this many bytes.
constexpr std::uint64_t kPieceBytes = 256 << 10;
constexpr std::uint32_t kEndlessRnr = 7;
// How often a requester that waits for an answer checks whether a port is paused.
constexpr std::int64_t kCheckPauseNs = 20 * beeline::kNsPerMs;
// The vendor errors of mlx5 for the two, because people search for these numbers.
constexpr std::uint32_t kVendorRetryExceeded = 0x81;
constexpr std::uint32_t kVendorRnrExceeded = 0x82;

ibv_wc_opcode completion_opcode(ibv_wr_opcode opcode) {
  if (opcode == IBV_WR_RDMA_READ) return IBV_WC_RDMA_READ;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) return IBV_WC_FETCH_ADD;
  if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP) return IBV_WC_COMP_SWAP;
  const bool sends = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
  return sends ? IBV_WC_SEND : IBV_WC_RDMA_WRITE;
}

std::uint32_t vendor_error(ibv_wc_status status) {
  if (status == IBV_WC_RETRY_EXC_ERR) return kVendorRetryExceeded;
  return status == IBV_WC_RNR_RETRY_EXC_ERR ? kVendorRnrExceeded : 0;
}

}  // namespace

bool Requester::can_run() const noexcept {
  if (is_device_removed()) return false;
  if (qp_.state() == IBV_QPS_ERR) return !is_idle();
  return !waits_forever_ && next() < end_of_work();
}

// One past the last request that may be worked on in this state.
std::uint64_t Requester::end_of_work() const noexcept {
  const ibv_qp_state state = qp_.state();
  if (state == IBV_QPS_RTS) return queue_.posted();
  return state == IBV_QPS_SQD ? std::min(drain_end_.load(), queue_.posted()) : 0;
}

void Requester::drain() noexcept {
  if (!in_flight_.empty()) {
    drain_end_ = send_sequence_ + (send_offset_ != 0 ? 1 : 0);
  } else {
    const bool started = offset_ != 0 || waiting_until_ != 0 || waits_forever_;
    drain_end_ = next() + (started ? 1 : 0);
  }
}

std::optional<std::int64_t> Requester::run(Budget budget) {
  for (;;) {
    if (qp_.state() == IBV_QPS_ERR) {
      if (!is_device_removed()) qp_.flush_locked();
      return std::nullopt;
    }
    if (!can_run()) return std::nullopt;
    if (waiting_until_ == 0) check_route();
    if (const auto again = check_pause()) return again;
    if (waiting_until_ != 0) {
      if (const auto again = wait_more(beeline::now_ns())) return again;
      waiting_until_ = 0;
      if (unanswered_ > qp_.attr().retry_cnt) {
        fail(IBV_WC_RETRY_EXC_ERR);
        continue;
      }
    }
    if (!in_flight_.empty() || is_paced()) {
      const auto again = run_shaped(beeline::now_ns(), budget);
      if (again) return again;
      continue;
    }
    const auto again = run_direct(budget);
    if (again) return again;
  }
}

void Requester::check_route() {
  const bool there = route_.refresh(qp_.runtime(), qp_.attr(), qp_.device(), qp_.qp_num());
  const bool is_paced = there && is_shaped();
  if (is_paced != is_paced_.load(std::memory_order_relaxed))
    is_paced_.store(is_paced, std::memory_order_relaxed);
}

std::optional<std::int64_t> Requester::wait_more(std::int64_t now) const noexcept {
  if (now >= waiting_until_) return std::nullopt;
  return std::min(waiting_until_, now + kCheckPauseNs);
}

// Executes pieces until one is not acknowledged; run() then decides how to go on.
std::optional<std::int64_t> Requester::run_direct(Budget& budget) {
  while (can_run()) {
    if (const auto again = check_pause()) return again;
    SendWqe& wqe = queue_.at(next());
    const std::uint64_t bytes = std::min(wqe.length - offset_, kPieceBytes);
    if (bytes > budget.bytes || budget.messages == 0) return beeline::now_ns();
    budget.bytes -= bytes;
    --budget.messages;
    if (!handle_answer(transfer_piece(wqe, next(), offset_, bytes), bytes)) return std::nullopt;
  }
  return std::nullopt;
}

Answer Requester::transfer_piece(SendWqe& wqe, std::uint64_t sequence, std::uint64_t offset,
                                 std::uint64_t bytes) {
  if (wqe.length > kMaxMessage) return {Verdict::kRefused, IBV_WC_LOC_LEN_ERR};
  if (is_read_or_atomic(wqe.opcode) && qp_.attr().max_rd_atomic == 0) {
    return {Verdict::kRefused, IBV_WC_LOC_QP_OP_ERR};
  }
  // Local errors are reported even if the peer does not respond.
  const BusyGuard busy(qp_.record());
  MemoryPieces ours;
  if (!gather(wqe, sequence, offset, bytes, ours)) return {Verdict::kLocalFault};
  if (!route_.refresh(qp_.runtime(), qp_.attr(), qp_.device(), qp_.qp_num())) {
    return {Verdict::kNoAnswer};
  }
  Delivery delivery = Delivery::kArrives;
  if (const std::uint32_t faults = route_.faults(); faults != 0) [[unlikely]] {
    const Answer met = apply_port_faults(faults, wqe, delivery);
    if (met.verdict != Verdict::kPlaced) return met;
  }
  if (!route_.is_connected_to(qp_.qp_num())) return {Verdict::kNoAnswer};
  const Request request{
      .opcode = wqe.opcode,
      .rkey = wqe.rkey,
      .remote_addr = wqe.remote_addr,
      .length = wqe.length,
      .offset = offset,
      .bytes = bytes,
      .imm_data = wqe.imm_data,
      .compare_add = wqe.compare_add,
      .swap = wqe.swap,
      .path_mtu = qp_.record().path_mtu,
      .sq_psn = qp_.attr().sq_psn,
      .connection = qp_.connection(),
      .first = !answered_,
      .corrupt = wqe.corrupt,
      .discard = wqe.discard,
      .solicited = wqe.solicited,
  };
  return exchange(sequence, request, ours, delivery);
}

// Executes the request at the peer, and applies losses to it and to its answer.
Answer Requester::exchange(std::uint64_t sequence, const Request& request, const MemoryPieces& ours,
                           Delivery delivery) {
  const bool reading = request.opcode == IBV_WR_RDMA_READ;
  if (reading && delivery == Delivery::kAnswerLost) return {Verdict::kNoAnswer};
  const std::uint64_t end = request.offset + request.bytes;
  if (!reading && has_taken(sequence, end)) [[unlikely]] {
    // The peer has executed this piece before, so it is only acknowledged.
    const bool is_acknowledged =
        delivery == Delivery::kArrives && route_.is_bound_to(request.connection);
    return {is_acknowledged ? Verdict::kPlaced : Verdict::kNoAnswer};
  }
  const Answer answer =
      ours.defers_writes && is_read_or_atomic(request.opcode)
          ? read_with_deferral(request, ours)
          : respond(qp_.runtime(), route_, qp_.attr().dest_qp_num, request, ours.pieces);
  if (delivery == Delivery::kArrives || answer.verdict == Verdict::kLocalFault) [[likely]]
    return answer;
  if (answer.verdict == Verdict::kPlaced) taken_ = Taken{sequence, end};
  return {Verdict::kNoAnswer};
}

bool Requester::gather(const SendWqe& wqe, std::uint64_t sequence, std::uint64_t offset,
                       std::uint64_t bytes, MemoryPieces& ours) {
  const SgeRecord* sges = queue_.sges(sequence);
  Window window(offset, bytes, ours.pieces);
  if (wqe.inlined) {
    window.add(sges[0].addr, sges[0].length);
    return true;
  }
  const std::uint32_t access = is_read_or_atomic(wqe.opcode) ? IBV_ACCESS_LOCAL_WRITE : 0;
  const Runtime& runtime = qp_.runtime();
  for (std::uint32_t i = 0; i < wqe.sge_count; ++i) {
    if (sges[i].length == 0) continue;
    const Translation sge = translate(runtime.arena(), runtime.slot(), sges[i].lkey,
                                      qp_.pd_number(), sges[i].addr, sges[i].length, access);
    if (!sge.allowed) return false;
    ours.add(window, sge, sges[i].length);
  }
  if (is_read_or_atomic(wqe.opcode)) return true;
  return ours.for_each_deferring([&](MrRecord& region, const iovec& piece) {
    return apply_own_deferred(qp_.runtime(), region,
                              reinterpret_cast<std::uint64_t>(piece.iov_base), piece.iov_len);
  });
}

// The answer goes into a region of this process whose writes are deferred.
Answer Requester::read_with_deferral(const Request& request, const MemoryPieces& ours) {
  Runtime& runtime = qp_.runtime();
  const Answer answer = respond(runtime, route_, qp_.attr().dest_qp_num, request, ours.staged());
  if (answer.verdict != Verdict::kPlaced) return answer;
  const bool is_recorded = ours.for_each_deferring([&](MrRecord& region, const iovec& piece) {
    return record_own_deferred(runtime, region, reinterpret_cast<std::uint64_t>(piece.iov_base),
                               piece.iov_len);
  });
  return is_recorded ? answer : Answer{Verdict::kLocalFault};
}

bool Requester::handle_answer(const Answer& answer, std::uint64_t bytes) {
  if (answer.verdict != Verdict::kNoAnswer) answered_ = true;
  switch (answer.verdict) {
    case Verdict::kPlaced:
      unanswered_ = 0;
      rnr_count_ = 0;
      offset_ += bytes;
      if (offset_ == queue_.at(next()).length) complete(IBV_WC_SUCCESS);
      return true;
    case Verdict::kNoAnswer: return wait_for_answer();
    case Verdict::kNotReady: return wait_until_ready(answer.wait_ns);
    case Verdict::kRefused: fail(answer.status); return false;
    case Verdict::kLocalFault: fail(IBV_WC_LOC_PROT_ERR); return false;
  }
  return false;
}

bool Requester::wait_for_answer() {
  const std::int64_t timeout = ack_timeout_ns(qp_.attr().timeout);
  if (timeout == 0) {
    waits_forever_ = true;
    return false;
  }
  ++unanswered_;
  waiting_until_ = beeline::now_ns() + qp_.scaled(timeout);
  return false;
}

bool Requester::wait_until_ready(std::int64_t wait_ns) {
  unanswered_ = 0;  // RNR NAK is an answer
  const std::uint32_t limit = qp_.attr().rnr_retry;
  if (limit != kEndlessRnr && rnr_count_ == limit) {
    fail(IBV_WC_RNR_RETRY_EXC_ERR);
    return false;
  }
  ++rnr_count_;
  waiting_until_ = beeline::now_ns() + qp_.scaled(wait_ns);
  return false;
}

void Requester::complete(ibv_wc_status status) {
  const std::uint64_t sequence = next();
  const SendWqe& wqe = queue_.at(sequence);
  CqeRecord entry = {};
  entry.wr_id = wqe.wr_id;
  entry.sequence = sequence;
  entry.kind = CqeKind::kSend;
  entry.qp_index = qp_.index();
  entry.status = status;
  entry.vendor_err = vendor_error(status);
  entry.opcode = completion_opcode(wqe.opcode);
  entry.byte_len = static_cast<std::uint32_t>(wqe.length);
  entry.qp_num = qp_.qp_num();
  offset_ = 0;
  const bool wanted = wqe.signaled || status != IBV_WC_SUCCESS;
  next_.store(sequence + 1, std::memory_order_seq_cst);
  if (wanted) qp_.push_send_completion(entry);
}

void Requester::fail(ibv_wc_status status) {
  drop_in_flight();
  complete(status);
  qp_.enter_error_locked();
}

void Requester::flush() {
  drop_in_flight();
  while (!is_idle()) complete(IBV_WC_WR_FLUSH_ERR);
}

void Requester::restart() {
  route_.forget();
  drop_in_flight();
  next_.store(0, std::memory_order_seq_cst);
  offset_ = 0;
  waiting_until_ = 0;
  waits_forever_ = false;
  answered_ = false;
  unanswered_ = 0;
  rnr_count_ = 0;
  wire_free_at_ = 0;
  paused_since_ = 0;
  taken_.reset();
  const std::uint64_t resets = qp_.record().state.load() >> 8;
  random_ = Random(splitmix64(qp_.runtime().header().seed ^ qp_.qp_num()) ^ resets);
}

}  // namespace softnic
