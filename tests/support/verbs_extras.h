// SPDX-License-Identifier: Apache-2.0
//
// Handles and helpers for what comes on top of plain queue pairs: shared receive queues, completion
// channels and atomic operations.
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
// What can really be posted to it, which may be more than was asked for.
uint32_t depth_of(ibv_srq* srq);
int arm_limit(ibv_srq* srq, uint32_t limit);
// A queue pair in RESET that takes its receives from srq.
QpPtr make_qp_on(const Nic& nic, ibv_srq* srq, const QpShape& shape = {});

int post(ibv_srq* srq, const RecvWork& work);
int post_list(ibv_srq* srq, const std::vector<RecvWork>& list, size_t* accepted = nullptr);

// Fills the queue, uses every receive of it through a pair of queue pairs of its own, and wants
// neither one more nor one less than the queue's depth. What was posted before is counted too. New
// receives are numbered from first_id on; answers the numbers of all.
std::set<uint64_t> use_up(const Nic& nic, ibv_srq* srq, uint64_t first_id);

ChannelPtr make_channel(ibv_context* context);
CqPtr make_cq(ibv_comp_channel* channel, int cqe, void* cq_context = nullptr);
bool is_readable(int fd);
bool has_cq_event(ibv_comp_channel* channel);
// Sleeps until the next event, with a deadline. It is not acknowledged.
ibv_cq* next_cq_event(ibv_comp_channel* channel);

// Eight bytes there are operated on, and what was there comes here.
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

// A queue pair of the NIC that is connected to itself. A READ of memory through the NIC pushes what
// was written to it before.
class Flusher {
 public:
  explicit Flusher(const Nic& nic);
  void flush(const Region& memory);

 private:
  Buffer local_;
  CqPtr cq_;
  QpPtr qp_;
};

// Memory that only a descriptor names, as a dma-buf is.
UniqueFd make_memfd(size_t size);

}  // namespace beeline::test
