// SPDX-License-Identifier: Apache-2.0
//
// Checks that every request of one completion queue completes exactly once: a request is recorded
// when it is posted, and its completion removes it. An unknown completion is an error.
#pragma once

#include <map>
#include <vector>

#include "tests/beds/fault/link.h"
#include "tests/support/verbs_work.h"

namespace beeline::test {

class Ledger {
 public:
  explicit Ledger(ibv_cq* cq) noexcept : cq_(cq) {}

  // Post the request and record it. Return its number.
  uint64_t post_work(ibv_qp* qp, SendWork work);
  uint64_t post_work(ibv_qp* qp, RecvWork work);

  // Waits for a send, which completes even if the peer has died. Another status than `wanted` means
  // that the peer is gone.
  ibv_wc sent(uint64_t number, ibv_wc_status wanted = IBV_WC_SUCCESS);
  // Waits for a receive, or until the link to the peer is closed.
  ibv_wc received(uint64_t number, const Link& link, ibv_wc_status wanted = IBV_WC_SUCCESS);

  // Waits until every posted request has completed, with any status, and checks that no other
  // completion arrives.
  void settle_all();

 private:
  void collect();
  template <class GiveUp>
  ibv_wc wait_for(uint64_t number, ibv_wc_status wanted, GiveUp&& give_up);

  ibv_cq* cq_;
  uint64_t last_number_ = 0;
  std::map<uint64_t, uint32_t> open_;  // number -> QP number
  std::map<uint64_t, ibv_wc> done_;
};

}  // namespace beeline::test
