// SPDX-License-Identifier: Apache-2.0
//
// Handles and helpers for shared receive queues, completion channels and atomic operations.
#pragma once

#include <unistd.h>

#include <set>

#include "common/base/fd.h"
#include "tests/support/verbs_fixture.h"

namespace beeline::test {

using SrqPtr = std::unique_ptr<ibv_srq, Freed<ibv_destroy_srq>>;
using ChannelPtr = std::unique_ptr<ibv_comp_channel, Freed<ibv_destroy_comp_channel>>;

inline constexpr int kAtomicAccess = kAllAccess | IBV_ACCESS_REMOTE_ATOMIC;

SrqPtr make_srq(ibv_pd* pd, uint32_t depth, uint32_t max_sge = 1);
// The number of receives that can be posted to it, which may be more than was requested.
uint32_t depth_of(ibv_srq* srq);
int arm_limit(ibv_srq* srq, uint32_t limit);
// A queue pair in RESET that takes its receives from srq.
QpPtr make_qp_on(const Nic& nic, ibv_srq* srq, const QpShape& shape = {});

int post(ibv_srq* srq, const RecvWork& work);
int post_list(ibv_srq* srq, const std::vector<RecvWork>& list, size_t* accepted = nullptr);

// Fills the queue and uses every receive of it through its own two queue pairs. There must be
// exactly as many as the queue's depth, including those that were posted before. New receives are
// numbered from first_id on. Returns the numbers of all.
std::set<uint64_t> use_up(const Nic& nic, ibv_srq* srq, uint64_t first_id);

ChannelPtr make_channel(ibv_context* context);
CqPtr make_cq(ibv_comp_channel* channel, int cqe, void* cq_context = nullptr);
bool is_readable(int fd);
bool has_cq_event(ibv_comp_channel* channel);
// Sleeps until the next event, with a deadline. Does not acknowledge it.
ibv_cq* next_cq_event(ibv_comp_channel* channel);

// An atomic operation on eight bytes of the peer. Their old value is written to local memory.
struct AtomicWork {
  ibv_wr_opcode opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  uint64_t wr_id = 0;
  std::vector<ibv_sge> local = {};
  uint64_t remote_addr = 0;
  uint32_t rkey = 0;
  uint64_t compare_add = 0;
  uint64_t swap = 0;
  unsigned flags = IBV_SEND_SIGNALED;
};

AtomicWork fetch_add(const Region& into, const Region& target, uint64_t add, uint64_t wr_id = 0);
AtomicWork compare_swap(const Region& into, const Region& target, uint64_t compare, uint64_t swap,
                        uint64_t wr_id = 0);
int post(ibv_qp* qp, const AtomicWork& work);

// A queue pair of the NIC that is connected to itself. A READ of memory through the NIC makes
// earlier writes to it visible.
class Flusher {
 public:
  explicit Flusher(const Nic& nic);
  void flush(const Region& memory);

 private:
  Buffer local_;
  CqPtr cq_;
  QpPtr qp_;
};

// Memory that is identified by a descriptor, like a dma-buf.
UniqueFd make_memfd(size_t size);

}  // namespace beeline::test
