// SPDX-License-Identifier: Apache-2.0
//
// Posts work requests, and waits for completions and events by busy polling. When a deadline
// passes, these helpers throw MustError, so they also work in threads and forked processes.
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
  uint32_t imm = 0;  // sent without changing its byte order, like wc.imm_data at the receiver
  unsigned flags = IBV_SEND_SIGNALED;
};

struct RecvWork {
  uint64_t wr_id = 0;
  std::vector<ibv_sge> local = {};
};

// Signaled work requests with one local and one remote range.
SendWork write_work(const Region& from, const Region& to, uint64_t wr_id = 0);
SendWork write_imm_work(const Region& from, const Region& to, uint32_t imm, uint64_t wr_id = 0);
SendWork read_work(const Region& into, const Region& from, uint64_t wr_id = 0);
SendWork send_work(const Region& from, uint64_t wr_id = 0);
SendWork send_imm_work(const Region& from, uint32_t imm, uint64_t wr_id = 0);
RecvWork recv_work(const Region& into, uint64_t wr_id = 0);
SendWork unsignaled(SendWork work);
// A signaled WRITE of 0 bytes, which needs no memory.
SendWork nothing_work(uint64_t wr_id = 0);

// What ibv_post_send and ibv_post_recv return. On failure bad_wr was checked to be this request.
int post(ibv_qp* qp, const SendWork& work);
int post(ibv_qp* qp, const RecvWork& work);
// Posts all in one call. On failure, *accepted is the number of requests before the bad one.
int post_list(ibv_qp* qp, const std::vector<SendWork>& list, size_t* accepted = nullptr);
int post_list(ibv_qp* qp, const std::vector<RecvWork>& list, size_t* accepted = nullptr);

// Polls `done` without pause, so that events that come too early or too late are noticed. It yields
// the processor now and then.
template <class Predicate>
void wait_until(Predicate&& done, const char* what) {
  constexpr unsigned kTurnsBetweenYields = 128;
  const auto deadline = Clock::now() + kPatience;
  for (unsigned turn = 1; !done(); ++turn) {
    if (turn % kTurnsBetweenYields != 0) continue;
    if (Clock::now() > deadline) throw MustError(std::string("waited too long for ") + what);
    std::this_thread::yield();
  }
}

double seconds_since(Clock::time_point start);
// Spins for a short time without a system call, so that another thread gets ahead.
void spin(int turns);

ibv_wc poll_one(ibv_cq* cq);
std::vector<ibv_wc> poll_many(ibv_cq* cq, size_t count);
// Whether the queue is empty at this moment. This proves something only after a completion that
// must come later.
bool is_empty(ibv_cq* cq);
// The next completion must be a success with this wr_id.
void must_complete(ibv_cq* cq, uint64_t wr_id);

// Waits for the next asynchronous event, and acknowledges it.
ibv_async_event next_event(ibv_context* context);
bool has_event(ibv_context* context);
// Reads events until one of this type arrives, and drops others.
ibv_async_event wait_for_event(ibv_context* context, ibv_event_type type);

ibv_qp_state state_of(ibv_qp* qp);
void wait_for_state(ibv_qp* qp, ibv_qp_state state);

}  // namespace beeline::test
