// SPDX-License-Identifier: Apache-2.0
//
// Keeps the books on one completion queue: every request that must complete is entered when it is
// posted and struck out by its completion. What completes twice, or was never posted, fails.
#pragma once

#include <map>
#include <vector>

#include "tests/fault/link.h"
#include "tests/support/verbs_work.h"

namespace beeline::test {

class Ledger {
 public:
  explicit Ledger(ibv_cq* cq) noexcept : cq_(cq) {}

  // Post, and enter under a number that is returned.
  uint64_t post_work(ibv_qp* qp, SendWork work);
  uint64_t post_work(ibv_qp* qp, RecvWork work);

  // A send of ours ends by itself, whatever has become of the peer. Any other status than the one
  // wanted means that the peer is gone.
  ibv_wc sent(uint64_t number, ibv_wc_status wanted = IBV_WC_SUCCESS);
  // A receive ends when the peer sends, which it does not do any more once the line is cut.
  ibv_wc received(uint64_t number, const Link& link, ibv_wc_status wanted = IBV_WC_SUCCESS);

  // Everything that was posted completes, with whatever status, and nothing besides.
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
