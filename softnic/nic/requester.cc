// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/requester.h"

#include <algorithm>

#include "common/base/clock.h"
#include "softnic/nic/fence.h"
#include "softnic/nic/hidden.h"
#include "softnic/nic/mr.h"
#include "softnic/nic/qp.h"
#include "softnic/nic/timers.h"

namespace softnic {
namespace {

using Verdict = Answer::Verdict;

// How much is moved between two looks at states and keys.
constexpr std::uint64_t kPieceBytes = 256 << 10;
constexpr std::uint32_t kEndlessRnr = 7;
// While waiting for an answer: whether the ports stand still, which stops the clock.
constexpr std::int64_t kLookUpNs = 20 * beeline::kNsPerMs;
// What mlx5 reports as vendor error for the two; people search for these numbers.
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
  if (unplugged()) return false;
  if (qp_.state() == IBV_QPS_ERR) return !idle();
  return !stuck_ && next() < end_of_work();
}

// One past the last request that the state allows to be worked on.
std::uint64_t Requester::end_of_work() const noexcept {
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

std::optional<std::int64_t> Requester::run(Budget budget) {
  for (;;) {
    if (qp_.state() == IBV_QPS_ERR) {
      if (!unplugged()) qp_.flush_locked();
      return std::nullopt;
    }
    if (!can_run()) return std::nullopt;
    if (waiting_until_ == 0) look_at_path();
    if (const auto again = hold_still()) return again;
    if (waiting_until_ != 0) {
      if (const auto again = wait_more(beeline::now_ns())) return again;
      waiting_until_ = 0;
      if (silences_ > qp_.attr().retry_cnt) {
        fail(IBV_WC_RETRY_EXC_ERR);
        continue;
      }
    }
    if (!flights_.empty() || paced()) {
      const auto again = run_shaped(beeline::now_ns(), budget);
      if (again) return again;
      continue;
    }
    const auto again = run_direct(budget);
    if (again) return again;
  }
}

void Requester::look_at_path() {
  const bool there = path_.refresh(qp_.runtime(), qp_.attr(), qp_.device(), qp_.qp_num());
  const bool paced = there && shaped();
  if (paced != paced_.load(std::memory_order_relaxed))
    paced_.store(paced, std::memory_order_relaxed);
}

std::optional<std::int64_t> Requester::wait_more(std::int64_t now) const noexcept {
  if (now >= waiting_until_) return std::nullopt;
  return std::min(waiting_until_, now + kLookUpNs);
}

// Carries pieces until something stands in the way; run() sorts out what.
std::optional<std::int64_t> Requester::run_direct(Budget& budget) {
  while (can_run()) {
    if (const auto again = hold_still()) return again;
    SendWqe& wqe = queue_.at(next());
    const std::uint64_t bytes = std::min(wqe.length - offset_, kPieceBytes);
    if (bytes > budget.bytes || budget.messages == 0) return beeline::now_ns();
    budget.bytes -= bytes;
    --budget.messages;
    if (!settle(carry(wqe, next(), offset_, bytes), bytes)) return std::nullopt;
  }
  return std::nullopt;
}

Answer Requester::carry(SendWqe& wqe, std::uint64_t sequence, std::uint64_t offset,
                        std::uint64_t bytes) {
  if (wqe.length > kMaxMessage) return {Verdict::kRefused, IBV_WC_LOC_LEN_ERR};
  if (brings_data_back(wqe.opcode) && qp_.attr().max_rd_atomic == 0) {
    return {Verdict::kRefused, IBV_WC_LOC_QP_OP_ERR};
  }
  // Our own mistakes are reported even if nobody listens.
  const Inside inside(qp_.record());
  Reach ours;
  if (!gather(wqe, sequence, offset, bytes, ours)) return {Verdict::kLocalFault};
  if (!path_.refresh(qp_.runtime(), qp_.attr(), qp_.device(), qp_.qp_num())) {
    return {Verdict::kSilence};
  }
  Journey journey = Journey::kArrives;
  if (const std::uint32_t trouble = path_.trouble(); trouble != 0) [[unlikely]] {
    const Answer met = meet_trouble(trouble, wqe, journey);
    if (met.verdict != Verdict::kPlaced) return met;
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
      .compare_add = wqe.compare_add,
      .swap = wqe.swap,
      .path_mtu = qp_.record().path_mtu,
      .sq_psn = qp_.attr().sq_psn,
      .connection = qp_.connection(),
      .first = !answered_,
      .corrupt = wqe.corrupt,
      .solicited = wqe.solicited,
  };
  return exchange(sequence, request, ours, journey);
}

// The far end's part, and what we hear of it.
Answer Requester::exchange(std::uint64_t sequence, const Request& request, const Reach& ours,
                           Journey journey) {
  const bool reading = request.opcode == IBV_WR_RDMA_READ;
  if (reading && journey == Journey::kAnswerLost) return {Verdict::kSilence};
  const std::uint64_t end = request.offset + request.bytes;
  if (!reading && has_taken(sequence, end)) [[unlikely]] {
    // A repetition: acknowledged, and good for nothing else.
    const bool heard = journey == Journey::kArrives && path_.listens_to(request.connection);
    return {heard ? Verdict::kPlaced : Verdict::kSilence};
  }
  const Answer answer =
      ours.hides && brings_data_back(request.opcode)
          ? bring_back(request, ours)
          : respond(qp_.runtime(), path_, qp_.attr().dest_qp_num, request, ours.pieces);
  if (journey == Journey::kArrives || answer.verdict == Verdict::kLocalFault) [[likely]]
    return answer;
  if (answer.verdict == Verdict::kPlaced) taken_ = Taken{sequence, end};
  return {Verdict::kSilence};
}

bool Requester::gather(const SendWqe& wqe, std::uint64_t sequence, std::uint64_t offset,
                       std::uint64_t bytes, Reach& ours) {
  const SgeRecord* sges = queue_.sges(sequence);
  Window window(offset, bytes, ours.pieces);
  if (wqe.inlined) {
    window.add(sges[0].addr, sges[0].length);
    return true;
  }
  const std::uint32_t access = brings_data_back(wqe.opcode) ? IBV_ACCESS_LOCAL_WRITE : 0;
  const Runtime& runtime = qp_.runtime();
  for (std::uint32_t i = 0; i < wqe.sge_count; ++i) {
    if (sges[i].length == 0) continue;
    const Translation sge = translate(runtime.arena(), runtime.slot(), sges[i].lkey,
                                      qp_.pd_number(), sges[i].addr, sges[i].length, access);
    if (!sge.allowed) return false;
    ours.add(window, sge, sges[i].length);
  }
  if (brings_data_back(wqe.opcode)) return true;
  return ours.each_hidden([&](MrRecord& region, const iovec& piece) {
    return reveal_own(qp_.runtime(), region, reinterpret_cast<std::uint64_t>(piece.iov_base),
                      piece.iov_len);
  });
}

// The answer goes into memory of ours that hides what is written.
Answer Requester::bring_back(const Request& request, const Reach& ours) {
  Runtime& runtime = qp_.runtime();
  const Answer answer = respond(runtime, path_, qp_.attr().dest_qp_num, request, ours.landing());
  if (answer.verdict != Verdict::kPlaced) return answer;
  const bool noted = ours.each_hidden([&](MrRecord& region, const iovec& piece) {
    return note_hidden_own(runtime, region, reinterpret_cast<std::uint64_t>(piece.iov_base),
                           piece.iov_len);
  });
  return noted ? answer : Answer{Verdict::kLocalFault};
}

bool Requester::settle(const Answer& answer, std::uint64_t bytes) {
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
  const std::int64_t timeout = ack_timeout_ns(qp_.attr().timeout);
  if (timeout == 0) {
    stuck_ = true;
    return false;
  }
  ++silences_;
  waiting_until_ = beeline::now_ns() + qp_.scaled(timeout);
  return false;
}

bool Requester::wait_until_ready(std::int64_t wait_ns) {
  silences_ = 0;  // somebody is there
  const std::uint32_t limit = qp_.attr().rnr_retry;
  if (limit != kEndlessRnr && rnrs_ == limit) {
    fail(IBV_WC_RNR_RETRY_EXC_ERR);
    return false;
  }
  ++rnrs_;
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
  still_since_ = 0;
  taken_.reset();
  const std::uint64_t life = qp_.record().state.load() >> 8;
  chance_ = Chance(scramble(qp_.runtime().header().seed ^ qp_.qp_num()) ^ life);
}

}  // namespace softnic
