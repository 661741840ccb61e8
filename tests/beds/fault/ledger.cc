// SPDX-License-Identifier: Apache-2.0
#include "tests/beds/fault/ledger.h"

#include <array>
#include <string>

namespace beeline::test {

uint64_t Ledger::post_work(ibv_qp* qp, SendWork work) {
  work.wr_id = ++last_number_;
  BL_MUST_OK(post(qp, work));
  open_.emplace(work.wr_id, qp->qp_num);
  return work.wr_id;
}

uint64_t Ledger::post_work(ibv_qp* qp, RecvWork work) {
  work.wr_id = ++last_number_;
  BL_MUST_OK(post(qp, work));
  open_.emplace(work.wr_id, qp->qp_num);
  return work.wr_id;
}

void Ledger::collect() {
  std::array<ibv_wc, 8> batch{};
  const int got = ibv_poll_cq(cq_, static_cast<int>(batch.size()), batch.data());
  BL_MUST(got >= 0);
  for (int i = 0; i < got; ++i) {
    const ibv_wc& wc = batch[static_cast<size_t>(i)];
    const auto entry = open_.find(wc.wr_id);
    if (entry == open_.end()) {
      throw MustError("request " + std::to_string(wc.wr_id) +
                      " completed twice or was never posted: " + ibv_wc_status_str(wc.status));
    }
    BL_MUST(wc.qp_num == entry->second);
    open_.erase(entry);
    done_.emplace(wc.wr_id, wc);
  }
}

template <class GiveUp>
ibv_wc Ledger::wait_for(uint64_t number, ibv_wc_status wanted, GiveUp&& give_up) {
  wait_until(
      [&] {
        const bool last_look = give_up();
        collect();
        if (last_look && !done_.contains(number)) throw PeerGone("no completion will arrive");
        return done_.contains(number);
      },
      "a completion");
  const ibv_wc wc = done_.at(number);
  if (wc.status != wanted) throw PeerGone(ibv_wc_status_str(wc.status));
  return wc;
}

ibv_wc Ledger::sent(uint64_t number, ibv_wc_status wanted) {
  return wait_for(number, wanted, [] { return false; });
}

ibv_wc Ledger::received(uint64_t number, const Link& link, ibv_wc_status wanted) {
  return wait_for(number, wanted, [&] { return link.is_cut(); });
}

void Ledger::settle_all() {
  wait_until(
      [&] {
        collect();
        return open_.empty();
      },
      "the last completions of broken queue pairs");
  for (int look = 0; look < 3; ++look) collect();
}

}  // namespace beeline::test
