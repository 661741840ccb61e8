// SPDX-License-Identifier: Apache-2.0
// The values of attributes that a queue pair accepts, and their values in a query.
#include <cstring>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

using Change = void (*)(ibv_qp_attr& attr, const Lab& lab);

std::string in_init(Lab& lab, Change change) {
  const End end(lab.a);
  ibv_qp_attr attr = init_attr(0);
  change(attr, lab);
  return verdict(modify(end, attr, kInitMask));
}

std::string in_rtr(Lab& lab, Change change) {
  const End end(lab.a);
  const End peer(lab.b);
  raise(end, peer, IBV_QPS_INIT);
  ibv_qp_attr attr = rtr_attr(lab.a, lab.b, peer.qp->qp_num);
  change(attr, lab);
  return verdict(modify(end, attr, kRtrMask));
}

// On Ethernet every address is global.
std::string without_grh(Lab& lab) {
  if (!lab.a.is_ethernet()) return kDoesNotApply;
  return in_rtr(lab, [](ibv_qp_attr& attr, const Lab&) { attr.ah_attr.is_global = 0; });
}

std::string in_rts(Lab& lab, Change change) {
  const End end(lab.a);
  const End peer(lab.b);
  raise(end, peer, IBV_QPS_RTR);
  ibv_qp_attr attr = rts_attr();
  change(attr, lab);
  return verdict(modify(end, attr, kRtsMask));
}

std::string tells_what_was_set(Lab& lab) {
  const End end(lab.a);
  const End peer(lab.b);
  LinkPlan plan;
  plan.timeout = 13;
  plan.retry = 5;
  plan.rnr_retry = 4;
  plan.min_rnr_timer = 9;
  plan.send_psn = 0x123456;
  plan.receive_psn = 0x654321;
  raise(end, peer, IBV_QPS_RTS, plan);
  ibv_qp_attr got = {};
  ibv_qp_init_attr init = {};
  const int mask = kInitMask | kRtrMask | kRtsMask;
  must_accept(::ibv_query_qp(end.qp.get(), &got, mask, &init), "ibv_query_qp");
  const ibv_qp_attr asked = rtr_attr(lab.a, lab.b, peer.qp->qp_num, plan);
  const bool same_gid =
      !lab.a.is_ethernet() ||
      std::memcmp(&got.ah_attr.grh.dgid, &asked.ah_attr.grh.dgid, sizeof(ibv_gid)) == 0;
  return all_of("as set", {{got.qp_state == IBV_QPS_RTS, "state"},
                           {got.port_num == kPort, "port"},
                           {got.qp_access_flags == end.qp_rights, "access flags"},
                           {got.path_mtu == asked.path_mtu, "path_mtu"},
                           {got.dest_qp_num == asked.dest_qp_num, "dest_qpn"},
                           {got.min_rnr_timer == 9, "min_rnr_timer"},
                           {got.timeout == 13, "timeout"},
                           {got.retry_cnt == 5, "retry_cnt"},
                           {got.rnr_retry == 4, "rnr_retry"},
                           {got.max_rd_atomic == 1, "max_rd_atomic"},
                           {got.max_dest_rd_atomic == 1, "max_dest_rd_atomic"},
                           {got.ah_attr.grh.sgid_index == lab.a.gid_index, "sgid_index"},
                           {same_gid, "dgid"}});
}

std::string psns(Lab& lab) {
  const End end(lab.a);
  const End peer(lab.b);
  LinkPlan plan;
  plan.send_psn = 0x123456;
  plan.receive_psn = 0x654321;
  raise(end, peer, IBV_QPS_RTS, plan);
  ibv_qp_attr got = {};
  ibv_qp_init_attr init = {};
  const int mask = IBV_QP_SQ_PSN | IBV_QP_RQ_PSN;
  must_accept(::ibv_query_qp(end.qp.get(), &got, mask, &init), "ibv_query_qp");
  return all_of("as set", {{got.sq_psn == 0x123456, "sq_psn"}, {got.rq_psn == 0x654321, "rq_psn"}});
}

std::string refusal_changes_nothing(Lab& lab) {
  const End end(lab.a);
  const End peer(lab.b);
  raise(end, peer, IBV_QPS_RTS);
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.min_rnr_timer = 20;
  attr.qp_access_flags = 0;
  attr.dest_qp_num = 5;
  const int mask =
      IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS | IBV_QP_DEST_QPN;  // not in RTS
  if (modify(end, attr, mask) == 0) return "accepted";
  ibv_qp_init_attr init = {};
  must_accept(::ibv_query_qp(end.qp.get(), &attr, mask, &init), "ibv_query_qp");
  return all_of("nothing changed", {{attr.min_rnr_timer == 12, "min_rnr_timer"},
                                    {attr.qp_access_flags == end.qp_rights, "access flags"},
                                    {attr.dest_qp_num == peer.qp->qp_num, "dest_qpn"}});
}

// ERR -> RESET -> ... -> RTS: nothing of the first connection is left.
std::string rights_after_reset(Lab& lab) {
  Pair pair(lab);
  for (const End* end : {&pair.a, &pair.b}) {
    must_accept(move_to(*end, IBV_QPS_ERR), "to ERR");
    must_accept(move_to(*end, IBV_QPS_RESET), "to RESET");
  }
  pair.b.qp_rights = IBV_ACCESS_REMOTE_READ;
  raise(pair.a, pair.b, IBV_QPS_RTS);
  raise(pair.b, pair.a, IBV_QPS_RTS);
  const Region& target = pair.b.memory;
  return run(pair.a, Work::write({pair.a.memory.piece(0, 8)}, target.address(), target.rkey()));
}

void add_ranges(Catalogue& all) {
  const auto init = [](Change change) { return [=](Lab& lab) { return in_init(lab, change); }; };
  const auto rtr = [](Change change) { return [=](Lab& lab) { return in_rtr(lab, change); }; };
  const auto rts = [](Change change) { return [=](Lab& lab) { return in_rts(lab, change); }; };
  const char* no = "refused EINVAL";
  const Catalogue ours = {
      {"attribute.port.0", no, init([](ibv_qp_attr& a, const Lab&) { a.port_num = 0; })},
      {"attribute.port.99", no, init([](ibv_qp_attr& a, const Lab&) { a.port_num = 99; })},
      {"attribute.pkey_index.past_table", no,
       init([](ibv_qp_attr& a, const Lab& lab) { a.pkey_index = lab.a.port.pkey_tbl_len; })},
      {"attribute.access_flags.unknown", no,
       init([](ibv_qp_attr& a, const Lab&) { a.qp_access_flags = 1u << 15; })},
      {"attribute.sgid_index.past_table", no, rtr([](ibv_qp_attr& a, const Lab& lab) {
         a.ah_attr.is_global = 1;
         a.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(lab.a.port.gid_tbl_len);
       })},
      {"attribute.sgid_index.empty_entry", "refused ENODATA|refused EINVAL",
       rtr([](ibv_qp_attr& a, const Lab& lab) {
         a.ah_attr.is_global = 1;
         a.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(lab.a.port.gid_tbl_len - 1);
       })},
      {"attribute.address.port_99", no,
       rtr([](ibv_qp_attr& a, const Lab&) { a.ah_attr.port_num = 99; })},
      {"attribute.address.not_global", no, without_grh},
      {"attribute.path_mtu.0", no,
       rtr([](ibv_qp_attr& a, const Lab&) { a.path_mtu = static_cast<ibv_mtu>(0); })},
      {"attribute.path_mtu.6", no,
       rtr([](ibv_qp_attr& a, const Lab&) { a.path_mtu = static_cast<ibv_mtu>(6); })},
      {"attribute.dest_qpn.25_bits", no,
       rtr([](ibv_qp_attr& a, const Lab&) { a.dest_qp_num |= 1u << 24; })},
      {"attribute.min_rnr_timer.32", no,
       rtr([](ibv_qp_attr& a, const Lab&) { a.min_rnr_timer = 32; })},
      {"attribute.max_dest_rd_atomic.255", no,
       rtr([](ibv_qp_attr& a, const Lab&) { a.max_dest_rd_atomic = 255; })},
      {"attribute.timeout.32", no, rts([](ibv_qp_attr& a, const Lab&) { a.timeout = 32; })},
      {"attribute.retry_cnt.8", no, rts([](ibv_qp_attr& a, const Lab&) { a.retry_cnt = 8; })},
      {"attribute.rnr_retry.8", no, rts([](ibv_qp_attr& a, const Lab&) { a.rnr_retry = 8; })},
      {"attribute.max_rd_atomic.255", no,
       rts([](ibv_qp_attr& a, const Lab&) { a.max_rd_atomic = 255; })},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace

void add_attributes(Catalogue& all) {
  add_ranges(all);
  const Catalogue ours = {
      {"attribute.query", "as set", tells_what_was_set},
      {"attribute.query.psn", "as set", psns},
      {"attribute.refusal", "nothing changed", refusal_changes_nothing},
      {"attribute.rights_after_reset", "REM_INV_REQ_ERR|REM_ACCESS_ERR", rights_after_reset},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
