// SPDX-License-Identifier: Apache-2.0
// Work requests, and waiting for their completions.
#include <endian.h>
#include <sched.h>

#include <cstring>
#include <thread>

#include "tests/beds/conformance/lab.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

Work make_work(ibv_wr_opcode opcode, std::vector<ibv_sge> pieces) {
  Work work{std::move(pieces)};
  work.wr.opcode = opcode;
  work.wr.send_flags = IBV_SEND_SIGNALED;
  return work;
}

Work make_rdma(ibv_wr_opcode opcode, std::vector<ibv_sge> pieces, std::uint64_t remote,
               std::uint32_t rkey) {
  Work work = make_work(opcode, std::move(pieces));
  work.wr.wr.rdma.remote_addr = remote;
  work.wr.wr.rdma.rkey = rkey;
  return work;
}

}  // namespace

Work Work::write(std::vector<ibv_sge> from, std::uint64_t to, std::uint32_t rkey) {
  return make_rdma(IBV_WR_RDMA_WRITE, std::move(from), to, rkey);
}

Work Work::write_imm(std::vector<ibv_sge> from, std::uint64_t to, std::uint32_t rkey,
                     std::uint32_t imm) {
  Work work = make_rdma(IBV_WR_RDMA_WRITE_WITH_IMM, std::move(from), to, rkey);
  work.wr.imm_data = htobe32(imm);
  return work;
}

Work Work::read(std::vector<ibv_sge> into, std::uint64_t from, std::uint32_t rkey) {
  return make_rdma(IBV_WR_RDMA_READ, std::move(into), from, rkey);
}

Work Work::send(std::vector<ibv_sge> from) { return make_work(IBV_WR_SEND, std::move(from)); }

Work Work::send_imm(std::vector<ibv_sge> from, std::uint32_t imm) {
  Work work = make_work(IBV_WR_SEND_WITH_IMM, std::move(from));
  work.wr.imm_data = htobe32(imm);
  return work;
}

Work Work::fetch_add(ibv_sge before, std::uint64_t to, std::uint32_t rkey, std::uint64_t add) {
  Work work = make_work(IBV_WR_ATOMIC_FETCH_AND_ADD, {before});
  work.wr.wr.atomic = {.remote_addr = to, .compare_add = add, .swap = 0, .rkey = rkey};
  return work;
}

Work Work::compare_swap(ibv_sge before, std::uint64_t to, std::uint32_t rkey, std::uint64_t compare,
                        std::uint64_t swap) {
  Work work = make_work(IBV_WR_ATOMIC_CMP_AND_SWP, {before});
  work.wr.wr.atomic = {.remote_addr = to, .compare_add = compare, .swap = swap, .rkey = rkey};
  return work;
}

Work Work::with_id(std::uint64_t id) const {
  Work work = *this;
  work.wr.wr_id = id;
  return work;
}

Work Work::with_flags(unsigned flags) const {
  Work work = *this;
  work.wr.send_flags |= flags;
  return work;
}

Work Work::quiet() const {
  Work work = *this;
  work.wr.send_flags &= ~unsigned{IBV_SEND_SIGNALED};
  return work;
}

int post(const End& end, const Work& work) {
  Work posted = work;
  posted.wr.sg_list = posted.pieces.data();
  posted.wr.num_sge = static_cast<int>(posted.pieces.size());
  ibv_send_wr* bad = nullptr;
  return ::ibv_post_send(end.qp.get(), &posted.wr, &bad);
}

int post_receive(const End& end, std::vector<ibv_sge> pieces, std::uint64_t id) {
  ibv_recv_wr wr = {};
  wr.wr_id = id;
  wr.sg_list = pieces.data();
  wr.num_sge = static_cast<int>(pieces.size());
  ibv_recv_wr* bad = nullptr;
  return ::ibv_post_recv(end.qp.get(), &wr, &bad);
}

int post_shared(const End& end, std::vector<ibv_sge> pieces, std::uint64_t id) {
  ibv_recv_wr wr = {};
  wr.wr_id = id;
  wr.sg_list = pieces.data();
  wr.num_sge = static_cast<int>(pieces.size());
  ibv_recv_wr* bad = nullptr;
  return ::ibv_post_srq_recv(end.srq.get(), &wr, &bad);
}

std::optional<ibv_wc> next(const Cq& cq, Milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  ibv_wc completion;
  std::memset(&completion, kUntouched & 0xff, sizeof completion);
  for (;;) {
    const int got = ::ibv_poll_cq(cq.get(), 1, &completion);
    if (got == 1) return completion;
    if (got < 0 || std::chrono::steady_clock::now() > until) return std::nullopt;
    ::sched_yield();
  }
}

std::vector<ibv_wc> next_many(const Cq& cq, std::size_t count, Milliseconds patience) {
  std::vector<ibv_wc> all;
  while (all.size() < count) {
    const auto completion = next(cq, patience);
    if (!completion) break;
    all.push_back(*completion);
  }
  return all;
}

void pause(Milliseconds patience) { std::this_thread::sleep_for(patience); }

std::string outcome(const Cq& cq, Milliseconds patience) {
  const auto completion = next(cq, patience);
  if (completion) return word(completion->status);
  return "nothing within " + std::to_string(patience.count() / 1000) + " s";
}

std::string statuses(const std::vector<ibv_wc>& completions) {
  std::string all;
  for (const ibv_wc& completion : completions) {
    if (!all.empty()) all += ", ";
    all += word(completion.status);
  }
  return all.empty() ? "nothing" : all;
}

std::string run(const End& end, const Work& work) {
  const int answer = post(end, work);
  return answer != 0 ? verdict(answer) : outcome(end.sends);
}

}  // namespace conformance
