// SPDX-License-Identifier: Apache-2.0
//
// Posting work, collecting completions and events. Waiting is busy polling with a deadline: these
// helpers throw MustError when it passes, so they work in threads and forked processes too.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "tests/support/must.h"
#include "tests/support/verbs_memory.h"

namespace beeline::test {

struct SendWork {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  uint64_t wr_id = 0;
  std::vector<ibv_sge> local = {};
  uint64_t remote_addr = 0;
  uint32_t rkey = 0;
  uint32_t imm = 0;  // goes out as it stands, so compare it with wc.imm_data as it stands
  unsigned flags = IBV_SEND_SIGNALED;
};

struct RecvWork {
  uint64_t wr_id = 0;
  std::vector<ibv_sge> local = {};
};

// Signalled work of one piece on each side.
SendWork write_work(const Region& from, const Region& to, uint64_t wr_id = 0);
SendWork write_imm_work(const Region& from, const Region& to, uint32_t imm, uint64_t wr_id = 0);
SendWork read_work(const Region& into, const Region& from, uint64_t wr_id = 0);
SendWork send_work(const Region& from, uint64_t wr_id = 0);
SendWork send_imm_work(const Region& from, uint32_t imm, uint64_t wr_id = 0);
RecvWork recv_work(const Region& into, uint64_t wr_id = 0);
SendWork unsignaled(SendWork work);
// A signalled WRITE of nothing: completes on any connected QP and needs no memory.
SendWork nothing_work(uint64_t wr_id = 0);

// What ibv_post_send and ibv_post_recv return. On failure bad_wr was checked to be this request.
int post(ibv_qp* qp, const SendWork& work);
int post(ibv_qp* qp, const RecvWork& work);
// One linked list, one call. On failure *accepted is how many went in before the bad one.
int post_list(ibv_qp* qp, const std::vector<SendWork>& list, size_t* accepted = nullptr);
int post_list(ibv_qp* qp, const std::vector<RecvWork>& list, size_t* accepted = nullptr);

// Spins until `done`, closely, so that what comes too early or too late is caught in the act; the
// CPU is offered to others now and then.
template <class Predicate>
void wait_until(Predicate&& done, const char* what) {
  constexpr unsigned kTurnsBetweenYields = 128;
  const auto deadline = Clock::now() + kPatience;
  for (unsigned turn = 1; !done(); ++turn) {
    if (turn % kTurnsBetweenYields != 0) continue;
    if (Clock::now() > deadline) throw MustError(std::string("waited in vain for ") + what);
    std::this_thread::yield();
  }
}

double seconds_since(Clock::time_point start);
// Passes a short time without a system call, so that another thread gets ahead.
void spin(int turns);

ibv_wc poll_one(ibv_cq* cq);
std::vector<ibv_wc> poll_many(ibv_cq* cq, size_t count);
// Nothing there at this moment. Proves something only after a completion that had to come later.
bool is_empty(ibv_cq* cq);
// The next completion must be a success with this wr_id.
void must_complete(ibv_cq* cq, uint64_t wr_id);

// The next asynchronous event, already acknowledged.
ibv_async_event next_event(ibv_context* context);
bool has_event(ibv_context* context);
// Reads events until one of this type comes; others are dropped.
ibv_async_event wait_for_event(ibv_context* context, ibv_event_type type);

ibv_qp_state state_of(ibv_qp* qp);
void wait_for_state(ibv_qp* qp, ibv_qp_state state);

}  // namespace beeline::test
