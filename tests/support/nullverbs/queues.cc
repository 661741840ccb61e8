// SPDX-License-Identifier: Apache-2.0
//
// Completion queues: the thread that executes a request adds entries, and the owner polls them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "tests/support/nullverbs/counters.h"
#include "tests/support/nullverbs/objects.h"
#include "tests/support/nullverbs/operations.h"
#include "tests/support/nullverbs/price.h"
#include "tests/support/nullverbs/tables.h"

namespace nullverbs {
namespace {

void fill(ibv_wc& out, const Completion& from) noexcept {
  out.wr_id = from.wr_id;
  out.status = static_cast<ibv_wc_status>(from.status);
  out.opcode =
      static_cast<ibv_wc_opcode>(from.is_receive != 0 ? IBV_WC_RECV + from.opcode : from.opcode);
  out.vendor_err = 0;
  out.byte_len = from.byte_len;
  out.imm_data = from.imm_data;
  out.qp_num = from.qp_num;
  out.wc_flags = from.has_immediate != 0 ? IBV_WC_WITH_IMM : 0;
}

void give_places_back(const Completion& completion) noexcept {
  if (completion.frees == 0) return;
  Qp* const qp = Tables::instance().qp(completion.qp_num);
  if (qp != nullptr) qp->sends_open.fetch_sub(completion.frees, std::memory_order_relaxed);
}

}  // namespace

// A device would lose a completion here, for which the program would wait for ever.
void Cq::push(const Completion& completion) {
  const std::lock_guard guard(lock);
  if (ring.full()) {
    std::fprintf(stderr, "nullverbs: a completion queue of %u is overrun\n", ring.limit());
    std::abort();
  }
  ring.push(completion);
  waiting.store(ring.count(), std::memory_order_relaxed);
}

int poll_cq(ibv_cq* base, int room, ibv_wc* out) {
  Cq& cq = Cq::of(base);
  const Visit visit(cq.one_thread);
  count(&NullverbsReport::polls);
  if (cq.waiting.load(std::memory_order_relaxed) == 0) {
    count(&NullverbsReport::empty_polls);
    return 0;
  }
  const std::lock_guard guard(cq.lock);
  int found = 0;
  for (; found < room && !cq.ring.empty(); ++found) {
    const Completion& completion = cq.ring.pop();
    fill(out[found], completion);
    give_places_back(completion);
    if (completion.status != IBV_WC_SUCCESS) count(&NullverbsReport::failures);
    if (completion.is_receive == 0) count(&NullverbsReport::send_completions);
  }
  cq.waiting.store(cq.ring.count(), std::memory_order_relaxed);
  count(&NullverbsReport::completions, static_cast<std::uint64_t>(found));
  completion_price.pay(static_cast<std::uint64_t>(found));
  return found;
}

// There are no completion channels to notify.
int req_notify_cq(ibv_cq*, int) { return 0; }

}  // namespace nullverbs
