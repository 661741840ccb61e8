// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/requester.h"

#include <algorithm>

#include "plugin/base/clock.h"
#include "softnic/nic/fence.h"
#include "softnic/nic/mr.h"
#include "softnic/nic/qp.h"
#include "softnic/nic/timers.h"

namespace softnic {
namespace {

using Verdict = Answer::Verdict;

// How much is moved between two looks at states and keys.
constexpr uint64_t kPieceBytes = 256 << 10;
constexpr uint32_t kEndlessRnr = 7;
// What mlx5 reports as vendor error for the two; people search for these numbers.
constexpr uint32_t kVendorRetryExceeded = 0x81;
constexpr uint32_t kVendorRnrExceeded = 0x82;

ibv_wc_opcode completion_opcode(ibv_wr_opcode opcode) {
  if (opcode == IBV_WR_RDMA_READ) return IBV_WC_RDMA_READ;
  const bool sends = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
  return sends ? IBV_WC_SEND : IBV_WC_RDMA_WRITE;
}

uint32_t vendor_error(ibv_wc_status status) {
  if (status == IBV_WC_RETRY_EXC_ERR) return kVendorRetryExceeded;
  return status == IBV_WC_RNR_RETRY_EXC_ERR ? kVendorRnrExceeded : 0;
}

// True if this request is the one an armed countdown was waiting for.
bool counts_down_to_zero(Shared<uint64_t>& countdown) {
  uint64_t left = countdown.load();
  while (left != 0) {
    if (countdown.compare_exchange(left, left - 1)) return left == 1;
  }
  return false;
}

}  // namespace

bool Requester::can_run() const noexcept {
  if (qp_.state() == IBV_QPS_ERR) return !idle();
  return !stuck_ && next() < end_of_work();
}

// One past the last request that the state allows to be worked on.
uint64_t Requester::end_of_work() const noexcept {
  const ibv_qp_state state = qp_.state();
  if (state == IBV_QPS_RTS) return queue_.posted();
  return state == IBV_QPS_SQD ? std::min(drain_end_.load(), queue_.posted()) : 0;
}

void Requester::drain() noexcept {
  if (!flights_.empty()) {
    drain_end_ = launch_sequence_ + (launch_offset_ != 0 ? 1 : 0);
  } else {
    const bool started = offset_ != 0 || waiting_until_ != 0 || stuck_;
    drain_end_ = next() + (started ? 1 : 0);
  }
}

std::optional<int64_t> Requester::run(Budget budget) {
  for (;;) {
    if (qp_.state() == IBV_QPS_ERR) {
      qp_.flush_locked();
      return std::nullopt;
    }
    if (!can_run()) return std::nullopt;
    if (waiting_until_ != 0) {
      if (beeline::now_ns() < waiting_until_) return waiting_until_;
      waiting_until_ = 0;
      if (silences_ > qp_.attr().retry_cnt) {
        fail(IBV_WC_RETRY_EXC_ERR);
        continue;
      }
    }
    if (!flights_.empty() || shaped()) {
      const auto again = run_shaped(beeline::now_ns(), budget);
      if (again) return again;
      continue;
    }
    const auto again = run_direct(budget);
    if (again) return again;
  }
}

// Carries pieces until something stands in the way; run() sorts out what.
std::optional<int64_t> Requester::run_direct(Budget& budget) {
  while (can_run()) {
    SendWqe& wqe = queue_.at(next());
    const uint64_t bytes = std::min(wqe.length - offset_, kPieceBytes);
    if (bytes > budget.bytes || budget.messages == 0) return beeline::now_ns();
    budget.bytes -= bytes;
    --budget.messages;
    if (!settle(carry(wqe, next(), offset_, bytes), bytes)) return std::nullopt;
  }
  return std::nullopt;
}

Answer Requester::apply_armed_faults(SendWqe& wqe) {
  wqe.counted = true;
  PortRecord& port = path_.local();
  const uint32_t trouble = port.trouble.load();
  if ((trouble & kTroubleCorrupt) != 0 && wqe.length != 0 &&
      counts_down_to_zero(port.corrupt_countdown)) {
    port.trouble.fetch_and(~uint32_t{kTroubleCorrupt});
    wqe.corrupt = true;
  }
  if ((trouble & kTroubleError) != 0 && counts_down_to_zero(port.error_countdown)) {
    port.trouble.fetch_and(~uint32_t{kTroubleError});
    return {Verdict::kRefused, static_cast<ibv_wc_status>(port.error_status.load())};
  }
  return {Verdict::kPlaced};
}

Answer Requester::carry(SendWqe& wqe, uint64_t sequence, uint64_t offset, uint64_t bytes) {
  if (wqe.length > kMaxMessage) return {Verdict::kRefused, IBV_WC_LOC_LEN_ERR};
  if (wqe.opcode == IBV_WR_RDMA_READ && qp_.attr().max_rd_atomic == 0) {
    return {Verdict::kRefused, IBV_WC_LOC_QP_OP_ERR};
  }
  // Our own mistakes are reported even if nobody listens.
  const Inside inside(qp_.record());
  Pieces ours;
  if (!gather(wqe, sequence, offset, bytes, ours)) return {Verdict::kLocalFault};
  if (!path_.refresh(qp_.runtime(), qp_.attr(), qp_.device(), qp_.qp_num())) {
    return {Verdict::kSilence};
  }
  const uint32_t trouble = path_.trouble();
  if (trouble != 0) [[unlikely]] {
    if ((trouble & (kTroubleError | kTroubleCorrupt)) != 0 && !wqe.counted) {
      const Answer fault = apply_armed_faults(wqe);
      if (fault.verdict != Verdict::kPlaced) return fault;
    }
    if ((trouble & kTroubleDown) != 0) return {Verdict::kSilence};
  }
  if (!path_.holds(qp_.qp_num())) return {Verdict::kSilence};
  const Request request{
      .opcode = wqe.opcode,
      .rkey = wqe.rkey,
      .remote_addr = wqe.remote_addr,
      .length = wqe.length,
      .offset = offset,
      .bytes = bytes,
      .imm_data = wqe.imm_data,
      .path_mtu = qp_.record().path_mtu,
      .sq_psn = qp_.attr().sq_psn,
      .connection = qp_.connection(),
      .first = !answered_,
      .corrupt = wqe.corrupt,
  };
  return respond(qp_.runtime(), path_, qp_.attr().dest_qp_num, request, ours);
}

bool Requester::gather(const SendWqe& wqe, uint64_t sequence, uint64_t offset, uint64_t bytes,
                       Pieces& ours) {
  const SgeRecord* sges = queue_.sges(sequence);
  Window window(offset, bytes, ours);
  if (wqe.inlined) {
    window.add(sges[0].addr, sges[0].length);
    return true;
  }
  const uint32_t access = wqe.opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0;
  const Runtime& runtime = qp_.runtime();
  for (uint32_t i = 0; i < wqe.sge_count; ++i) {
    if (sges[i].length == 0) continue;
    const Translation sge = translate(runtime.arena(), runtime.slot(), sges[i].lkey,
                                      qp_.pd_number(), sges[i].addr, sges[i].length, access);
    if (!sge.allowed) return false;
    window.add(sge.address, sges[i].length);
  }
  return true;
}

bool Requester::settle(const Answer& answer, uint64_t bytes) {
  if (answer.verdict != Verdict::kSilence) answered_ = true;
  switch (answer.verdict) {
    case Verdict::kPlaced:
      silences_ = 0;
      rnrs_ = 0;
      offset_ += bytes;
      if (offset_ == queue_.at(next()).length) complete(IBV_WC_SUCCESS);
      return true;
    case Verdict::kSilence: return wait_for_answer();
    case Verdict::kNotReady: return wait_until_ready(answer.wait_ns);
    case Verdict::kRefused: fail(answer.status); return false;
    case Verdict::kLocalFault: fail(IBV_WC_LOC_PROT_ERR); return false;
  }
  return false;
}

bool Requester::wait_for_answer() {
  const int64_t timeout = ack_timeout_ns(qp_.attr().timeout);
  if (timeout == 0) {
    stuck_ = true;
    return false;
  }
  ++silences_;
  waiting_until_ = beeline::now_ns() + qp_.scaled(timeout);
  return false;
}

bool Requester::wait_until_ready(int64_t wait_ns) {
  silences_ = 0;  // somebody is there
  const uint32_t limit = qp_.attr().rnr_retry;
  if (limit != kEndlessRnr && rnrs_ == limit) {
    fail(IBV_WC_RNR_RETRY_EXC_ERR);
    return false;
  }
  ++rnrs_;
  waiting_until_ = beeline::now_ns() + qp_.scaled(wait_ns);
  return false;
}

void Requester::complete(ibv_wc_status status) {
  const uint64_t sequence = next();
  const SendWqe& wqe = queue_.at(sequence);
  CqeRecord entry = {};
  entry.wr_id = wqe.wr_id;
  entry.sequence = sequence;
  entry.kind = CqeKind::kSend;
  entry.qp_index = qp_.index();
  entry.status = status;
  entry.vendor_err = vendor_error(status);
  entry.opcode = completion_opcode(wqe.opcode);
  entry.byte_len = static_cast<uint32_t>(wqe.length);
  entry.qp_num = qp_.qp_num();
  offset_ = 0;
  const bool wanted = wqe.signaled || status != IBV_WC_SUCCESS;
  next_.store(sequence + 1, std::memory_order_seq_cst);
  if (wanted) qp_.push_send_completion(entry);
}

void Requester::fail(ibv_wc_status status) {
  abandon_flights();
  complete(status);
  qp_.enter_error_locked();
}

void Requester::flush() {
  abandon_flights();
  while (!idle()) complete(IBV_WC_WR_FLUSH_ERR);
}

void Requester::restart() {
  path_.forget();
  abandon_flights();
  next_.store(0, std::memory_order_seq_cst);
  offset_ = 0;
  waiting_until_ = 0;
  stuck_ = false;
  answered_ = false;
  silences_ = 0;
  rnrs_ = 0;
  wire_free_at_ = 0;
}

}  // namespace softnic
