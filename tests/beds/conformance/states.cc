// SPDX-License-Identifier: Apache-2.0
// The states of a queue pair: permitted and other transitions, and their required attributes.
#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

constexpr ibv_qp_state kReachable[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                       IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};

// The required attributes of a transition. Transitions that are not permitted are tried with the
// same.
int mask_for(ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_INIT && from != IBV_QPS_INIT) return kInitMask;
  if (to == IBV_QPS_RTR) return kRtrMask;
  if (to == IBV_QPS_RTS && from != IBV_QPS_RTS && from != IBV_QPS_SQD) return kRtsMask;
  return IBV_QP_STATE;
}

ibv_qp_attr attr_for(const End& end, const End& peer, ibv_qp_state to) {
  ibv_qp_attr attr = {};
  if (to == IBV_QPS_INIT) attr = init_attr(end.qp_rights);
  if (to == IBV_QPS_RTR) attr = rtr_attr(end.device, peer.device, peer.qp->qp_num);
  if (to == IBV_QPS_RTS) attr = rts_attr();
  attr.qp_state = to;
  return attr;
}

std::string move(Lab& lab, ibv_qp_state from, ibv_qp_state to) {
  const End end(lab.a);
  const End peer(lab.b);
  raise(end, peer, from == IBV_QPS_ERR ? IBV_QPS_INIT : from);
  if (from == IBV_QPS_ERR) must_accept(move_to(end, IBV_QPS_ERR), "to ERR");
  const int answer = modify(end, attr_for(end, peer, to), mask_for(from, to));
  // A refused call must not change the state, an accepted one must.
  const ibv_qp_state now = state_of(end);
  const ibv_qp_state expected = answer == 0 ? to : from;
  return verdict(answer) + (now == expected ? "" : ", but " + word(now));
}

bool is_legal(ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET)) return true;
  switch (from) {
    case IBV_QPS_RESET: return to == IBV_QPS_INIT;
    case IBV_QPS_INIT: return to == IBV_QPS_INIT || to == IBV_QPS_RTR;
    case IBV_QPS_RTR: return to == IBV_QPS_RTS;
    case IBV_QPS_RTS:
    case IBV_QPS_SQD: return to == IBV_QPS_RTS || to == IBV_QPS_SQD;
    case IBV_QPS_ERR:
    case IBV_QPS_SQE:
    case IBV_QPS_UNKNOWN: return false;
  }
  return false;
}

// The specification also permits RESET to ERR: "any state".
std::string spec_of(ibv_qp_state from, ibv_qp_state to) {
  if (from == IBV_QPS_RESET && to == IBV_QPS_ERR) return kOpen;
  return is_legal(from, to) ? "accepted" : "refused EINVAL";
}

struct Attribute {
  const char* name;
  int bit;
};
constexpr Attribute kInit[] = {{"pkey_index", IBV_QP_PKEY_INDEX},
                               {"port", IBV_QP_PORT},
                               {"access_flags", IBV_QP_ACCESS_FLAGS}};
constexpr Attribute kRtr[] = {{"address", IBV_QP_AV},
                              {"path_mtu", IBV_QP_PATH_MTU},
                              {"dest_qpn", IBV_QP_DEST_QPN},
                              {"rq_psn", IBV_QP_RQ_PSN},
                              {"max_dest_rd_atomic", IBV_QP_MAX_DEST_RD_ATOMIC},
                              {"min_rnr_timer", IBV_QP_MIN_RNR_TIMER}};
constexpr Attribute kRts[] = {{"timeout", IBV_QP_TIMEOUT},
                              {"retry_cnt", IBV_QP_RETRY_CNT},
                              {"rnr_retry", IBV_QP_RNR_RETRY},
                              {"sq_psn", IBV_QP_SQ_PSN},
                              {"max_rd_atomic", IBV_QP_MAX_QP_RD_ATOMIC}};

// A transition with `change` applied to its required mask.
std::string move_with(Lab& lab, ibv_qp_state from, ibv_qp_state to, int added, int left_out) {
  const End end(lab.a);
  const End peer(lab.b);
  raise(end, peer, from);
  const int mask = (mask_for(from, to) | added) & ~left_out;
  return verdict(modify(end, attr_for(end, peer, to), mask));
}

template <std::size_t kCount>
void add_missing(Catalogue& all, ibv_qp_state from, ibv_qp_state to,
                 const Attribute (&attributes)[kCount]) {
  for (const Attribute& attribute : attributes) {
    all.push_back({"state." + word(from) + "_" + word(to) + ".without_" + attribute.name,
                   "refused EINVAL",
                   [=](Lab& lab) { return move_with(lab, from, to, 0, attribute.bit); }});
  }
}

std::string wrong_current_state(Lab& lab) {
  const End end(lab.a);
  ibv_qp_attr attr = init_attr(0);
  attr.cur_qp_state = IBV_QPS_RTS;
  return verdict(modify(end, attr, kInitMask | IBV_QP_CUR_STATE));
}

}  // namespace

void add_states(Catalogue& all) {
  for (const ibv_qp_state from : kReachable) {
    for (const ibv_qp_state to : kReachable) {
      all.push_back({"state." + word(from) + "_" + word(to), spec_of(from, to),
                     [from, to](Lab& lab) { return move(lab, from, to); }});
    }
  }
  add_missing(all, IBV_QPS_RESET, IBV_QPS_INIT, kInit);
  add_missing(all, IBV_QPS_INIT, IBV_QPS_RTR, kRtr);
  add_missing(all, IBV_QPS_RTR, IBV_QPS_RTS, kRts);
  const auto added = [](ibv_qp_state from, ibv_qp_state to, int bit) {
    return [=](Lab& lab) { return move_with(lab, from, to, bit, 0); };
  };
  const Catalogue more = {
      {"state.RESET_INIT.with_dest_qpn", "refused EINVAL",
       added(IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_DEST_QPN)},
      {"state.INIT_RTR.with_timeout", "refused EINVAL",
       added(IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_TIMEOUT)},
      {"state.RTS_RTS.with_dest_qpn", "refused EINVAL",
       added(IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_DEST_QPN)},
      {"state.RTS_RTS.with_access_flags", "accepted",
       added(IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS)},
      {"state.wrong_current_state", "refused EINVAL", wrong_current_state},
  };
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace conformance
