// SPDX-License-Identifier: Apache-2.0
// Posting: in each state, too many requests, wrong requests, and the effect of a refused list.
#include <cstring>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

Work small_write(const Pair& pair) {
  return Work::write({pair.a.memory.piece(0, 8)}, pair.b.memory.address(), pair.b.memory.rkey());
}

std::string send_in(Lab& lab, ibv_qp_state state) {
  const End end(lab.a);
  const End peer(lab.b);
  raise(end, peer, state);
  return verdict(post(end, Work::send({end.memory.piece(0, 8)})));
}

std::string receive_in(Lab& lab, ibv_qp_state state) {
  const End end(lab.a);
  const End peer(lab.b);
  raise(end, peer, state);
  return verdict(post_receive(end, {end.memory.piece(0, 8)}));
}

std::string send_in_err(Lab& lab) {
  const Pair pair(lab);
  must_accept(move_to(pair.a, IBV_QPS_ERR), "to ERR");
  return run(pair.a, small_write(pair));
}

std::string receive_in_err(Lab& lab) {
  const Pair pair(lab);
  must_accept(move_to(pair.a, IBV_QPS_ERR), "to ERR");
  pause(kSilence);  // until the flush is over
  const int answer = post_receive(pair.a, {pair.a.memory.piece(0, 8)});
  return answer != 0 ? verdict(answer) : outcome(pair.a.receives);
}

// In SQD sends are accepted and wait; receives go on.
std::string send_in_sqd(Lab& lab) {
  const Pair pair(lab);
  drain(pair.a);
  const int answer = post(pair.a, small_write(pair));
  if (answer != 0) return verdict(answer);
  if (next(pair.a.sends, kSilence)) return "runs in SQD";
  must_accept(move_to(pair.a, IBV_QPS_RTS), "back to RTS");
  return "waits, then " + outcome(pair.a.sends);
}

std::string receive_of_init(Lab& lab) {
  const End a(lab.a);
  End b(lab.b);
  raise(b, a, IBV_QPS_INIT);
  must_accept(post_receive(b, {b.memory.piece(0, 8)}), "ibv_post_recv");
  const ibv_qp_attr rtr = rtr_attr(lab.b, lab.a, a.qp->qp_num);
  must_accept(modify(b, rtr, kRtrMask), "to RTR");
  raise(a, b, IBV_QPS_RTS);
  must_accept(post(a, Work::send({a.memory.piece(0, 8)})), "ibv_post_send");
  return outcome(b.receives);
}

std::vector<ibv_sge> pieces_of(const End& end, std::uint32_t count) {
  return std::vector<ibv_sge>(count, end.memory.piece(0, 8));
}

std::uint32_t granted_pieces(const End& end, std::uint32_t ibv_qp_cap::*which) {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  must_accept(::ibv_query_qp(end.qp.get(), &attr, IBV_QP_CAP, &init), "ibv_query_qp");
  return attr.cap.*which;
}

std::string too_many_pieces(Lab& lab) {
  const Pair pair(lab);
  const std::uint32_t most = granted_pieces(pair.a, &ibv_qp_cap::max_send_sge);
  return verdict(post(pair.a, Work::send(pieces_of(pair.a, most + 1))));
}

std::string too_many_receive_pieces(Lab& lab) {
  const Pair pair(lab);
  const std::uint32_t most = granted_pieces(pair.a, &ibv_qp_cap::max_recv_sge);
  return verdict(post_receive(pair.a, pieces_of(pair.a, most + 1)));
}

// Of three writes the second has too many SGEs. The first is executed, the third is not.
std::string partial_list(Lab& lab) {
  Pair pair(lab);
  const std::uint32_t most = granted_pieces(pair.a, &ibv_qp_cap::max_send_sge);
  const Region& target = pair.b.memory;
  Work works[3] = {
      small_write(pair),
      Work::write(pieces_of(pair.a, most + 1), target.address(8), target.rkey()),
      Work::write({pair.a.memory.piece(0, 8)}, target.address(64), target.rkey()),
  };
  for (std::size_t i = 0; i < 3; ++i) {
    works[i].wr.wr_id = i + 1;
    works[i].wr.sg_list = works[i].pieces.data();
    works[i].wr.num_sge = static_cast<int>(works[i].pieces.size());
    works[i].wr.next = i < 2 ? &works[i + 1].wr : nullptr;
  }
  pair.a.memory.fill(0, 8, 3);
  ibv_send_wr* bad = nullptr;
  if (::ibv_post_send(pair.a.qp.get(), &works[0].wr, &bad) == 0) return "accepted";
  const auto done = next(pair.a.sends);
  const auto more = next(pair.a.sends, kSilence);
  return all_of("the first runs, the second is named",
                {{bad == &works[1].wr, "bad_wr"},
                 {done && done->wr_id == 1 && !more, "completions"},
                 {target.has_pattern(0, 8, 3), "the first did not run"},
                 {!target.has_pattern(64, 8, 3), "the third ran"}});
}

// Fills the queue behind a send that waits for a receive.
std::string full_send_queue(Lab& lab) {
  LinkPlan patient;
  patient.rnr_retry = 7;
  const Pair pair(lab, {.link = patient});
  const std::uint32_t depth = granted_pieces(pair.a, &ibv_qp_cap::max_send_wr);
  const Work work = Work::send({pair.a.memory.piece(0, 8)});
  for (std::uint32_t i = 0; i < depth; ++i) must_accept(post(pair.a, work), "ibv_post_send");
  return verdict(post(pair.a, work));
}

std::string full_receive_queue(Lab& lab) {
  const Pair pair(lab);
  const std::uint32_t depth = granted_pieces(pair.a, &ibv_qp_cap::max_recv_wr);
  for (std::uint32_t i = 0; i < depth; ++i) {
    must_accept(post_receive(pair.a, {pair.a.memory.piece(0, 8)}), "ibv_post_recv");
  }
  return verdict(post_receive(pair.a, {pair.a.memory.piece(0, 8)}));
}

// A polled completion frees the queue entries of its request and of all earlier ones.
std::string room_comes_back(Lab& lab) {
  const Pair pair(lab);
  const std::uint32_t depth = granted_pieces(pair.a, &ibv_qp_cap::max_send_wr);
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 1; i < depth; ++i) {
      must_accept(post(pair.a, small_write(pair).quiet()), "ibv_post_send");
    }
    must_accept(post(pair.a, small_write(pair)), "ibv_post_send");
    const auto completion = next(pair.a.sends);
    if (!completion || completion->status != IBV_WC_SUCCESS) return "nothing";
  }
  return "comes back";
}

// Unsignaled work has no completion, so its queue entries are not freed.
std::string unsignalled_alone(Lab& lab) {
  const Pair pair(lab);
  const std::uint32_t depth = granted_pieces(pair.a, &ibv_qp_cap::max_send_wr);
  for (std::uint32_t i = 0; i < depth; ++i) {
    must_accept(post(pair.a, small_write(pair).quiet()), "ibv_post_send");
  }
  (void)next(pair.a.sends, kSilence);
  return verdict(post(pair.a, small_write(pair).quiet()));
}

std::string partial_receive_list(Lab& lab) {
  const Pair pair(lab);
  const std::uint32_t most = granted_pieces(pair.a, &ibv_qp_cap::max_recv_sge);
  std::vector<ibv_sge> pieces = pieces_of(pair.a, most + 1);
  ibv_recv_wr list[2] = {};
  for (ibv_recv_wr& wr : list) wr.sg_list = pieces.data();
  list[0].num_sge = 1;
  list[0].next = &list[1];
  list[1].num_sge = static_cast<int>(most) + 1;
  ibv_recv_wr* bad = nullptr;
  if (::ibv_post_recv(pair.a.qp.get(), list, &bad) == 0) return "accepted";
  return bad == &list[1] ? "the second is named" : "another is named";
}

std::string unknown_opcode(Lab& lab) {
  const Pair pair(lab);
  Work work = small_write(pair);
  work.wr.opcode = static_cast<ibv_wr_opcode>(13);
  return verdict(post(pair.a, work));
}

// The ibv_wr_* interface, and ibv_wr_abort.
std::string builder(Lab& lab, bool complete) {
  Pair pair(lab);
  ibv_qp_init_attr_ex init = {};
  init.send_cq = pair.a.sends.get();
  init.recv_cq = pair.a.receives.get();
  init.qp_type = IBV_QPT_RC;
  init.cap = EndPlan{}.cap;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.pd = pair.a.pd.get();
  init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
  must_accept(move_to(pair.b, IBV_QPS_RESET), "to RESET");
  pair.a.qp.reset(::ibv_create_qp_ex(lab.a.context.get(), &init));
  if (pair.a.qp == nullptr) return verdict_of_errno(false);
  raise(pair.a, pair.b, IBV_QPS_RTS);
  raise(pair.b, pair.a, IBV_QPS_RTS);
  ibv_qp_ex* qp = ::ibv_qp_to_qp_ex(pair.a.qp.get());
  if (qp == nullptr) return "no builder";
  ::ibv_wr_start(qp);
  qp->wr_id = 1;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ::ibv_wr_rdma_write(qp, pair.b.memory.rkey(), pair.b.memory.address());
  const ibv_sge piece = pair.a.memory.piece(0, 8);
  ::ibv_wr_set_sge(qp, piece.lkey, piece.addr, piece.length);
  if (!complete) {
    ::ibv_wr_abort(qp);
    return next(pair.a.sends, kSilence) ? "runs" : "nothing runs";
  }
  const int answer = ::ibv_wr_complete(qp);
  return answer != 0 ? verdict(answer) : outcome(pair.a.sends);
}

void add_limits(Catalogue& all) {
  const Catalogue ours = {
      {"post.send.too_many_pieces", "refused EINVAL|refused ENOMEM", too_many_pieces},
      {"post.receive.too_many_pieces", "refused EINVAL|refused ENOMEM", too_many_receive_pieces},
      {"post.send.partial_list", "the first runs, the second is named", partial_list},
      {"post.receive.partial_list", "the second is named", partial_receive_list},
      {"post.send.unsignalled_alone", kOpen, unsignalled_alone},
      {"post.send.queue_full", "refused ENOMEM", full_send_queue},
      {"post.receive.queue_full", "refused ENOMEM", full_receive_queue},
      {"post.send.room_comes_back", "comes back", room_comes_back},
      {"post.send.unknown_opcode", "refused EINVAL", unknown_opcode},
      {"post.builder.complete", "SUCCESS", [](Lab& lab) { return builder(lab, true); }},
      {"post.builder.abort", "nothing runs", [](Lab& lab) { return builder(lab, false); }},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace

void add_post(Catalogue& all) {
  const auto send = [](ibv_qp_state in) { return [=](Lab& lab) { return send_in(lab, in); }; };
  const auto receive = [](ibv_qp_state in) {
    return [=](Lab& lab) { return receive_in(lab, in); };
  };
  const char* no = "refused EINVAL";
  const Catalogue ours = {
      {"post.send.in_RESET", no, send(IBV_QPS_RESET)},
      {"post.send.in_INIT", no, send(IBV_QPS_INIT)},
      {"post.send.in_RTR", no, send(IBV_QPS_RTR)},
      {"post.send.in_SQD", "waits, then SUCCESS", send_in_sqd},
      {"post.send.in_ERR", "WR_FLUSH_ERR", send_in_err},
      {"post.receive.in_RESET", no, receive(IBV_QPS_RESET)},
      {"post.receive.in_INIT", "accepted", receive(IBV_QPS_INIT)},
      {"post.receive.in_RTR", "accepted", receive(IBV_QPS_RTR)},
      {"post.receive.in_ERR", "WR_FLUSH_ERR", receive_in_err},
      {"post.receive.of_INIT_is_used", "SUCCESS", receive_of_init},
  };
  all.insert(all.end(), ours.begin(), ours.end());
  add_limits(all);
}

}  // namespace conformance
