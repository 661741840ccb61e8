// SPDX-License-Identifier: Apache-2.0
// Shared receive queues.
#include <algorithm>
#include <set>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

constexpr std::uint32_t kDepth = 16;

PairPlan shared_plan() {
  PairPlan plan;
  plan.b.shared_receives = kDepth;
  return plan;
}

std::string create(Lab& lab, std::uint32_t depth, std::uint32_t pieces) {
  const Pd pd(::ibv_alloc_pd(lab.a.context.get()));
  ibv_srq_init_attr init = {};
  init.attr.max_wr = depth;
  init.attr.max_sge = pieces;
  const Srq srq(::ibv_create_srq(pd.get(), &init));
  return verdict_of_errno(srq != nullptr);
}

std::string query(Lab& lab) {
  EndPlan plan;
  plan.shared_receives = kDepth;
  const End end(lab.a, plan);
  ibv_srq_attr attr = {};
  must_accept(::ibv_query_srq(end.srq.get(), &attr), "ibv_query_srq");
  return all_of("at least as made", {{attr.max_wr >= kDepth, "max_wr"},
                                     {attr.max_sge >= 4, "max_sge"},
                                     {attr.srq_limit == 0, "srq_limit"}});
}

int arm_limit(const End& end, std::uint32_t limit) {
  ibv_srq_attr attr = {};
  attr.srq_limit = limit;
  return ::ibv_modify_srq(end.srq.get(), &attr, IBV_SRQ_LIMIT);
}

std::string limit_above_depth(Lab& lab) {
  EndPlan plan;
  plan.shared_receives = kDepth;
  const End end(lab.a, plan);
  ibv_srq_attr attr = {};
  must_accept(::ibv_query_srq(end.srq.get(), &attr), "ibv_query_srq");
  return verdict(arm_limit(end, attr.max_wr + 1));
}

std::string destroy_in_use(Lab& lab) {
  EndPlan plan;
  plan.shared_receives = kDepth;
  const End end(lab.a, plan);
  return verdict(::ibv_destroy_srq(end.srq.get()));
}

std::string too_many(Lab& lab) {
  EndPlan plan;
  plan.shared_receives = kDepth;
  const End end(lab.a, plan);
  ibv_srq_attr attr = {};
  must_accept(::ibv_query_srq(end.srq.get(), &attr), "ibv_query_srq");
  for (std::uint32_t i = 0; i < attr.max_wr; ++i) {
    const int answer = post_shared(end, {end.memory.piece(0, 8)});
    if (answer != 0) return "one too early: " + verdict(answer);
  }
  return verdict(post_shared(end, {end.memory.piece(0, 8)}));
}

std::string too_many_pieces(Lab& lab) {
  EndPlan plan;
  plan.shared_receives = kDepth;
  const End end(lab.a, plan);
  ibv_srq_attr attr = {};
  must_accept(::ibv_query_srq(end.srq.get(), &attr), "ibv_query_srq");
  return verdict(post_shared(end, std::vector<ibv_sge>(attr.max_sge + 1, end.memory.piece(0, 8))));
}

std::string receive_of_its_own(Lab& lab) {
  const Pair pair(lab, shared_plan());
  return verdict(post_receive(pair.b, {pair.b.memory.piece(0, 8)}));
}

std::string first_in_first_out(Lab& lab) {
  Pair pair(lab, shared_plan());
  Region& memory = pair.b.memory;
  for (std::uint64_t id = 0; id < 4; ++id) {
    must_accept(post_shared(pair.b, {memory.piece(id * 64, 64)}, id), "ibv_post_srq_recv");
  }
  for (std::uint8_t i = 0; i < 4; ++i) {
    pair.a.memory.fill(std::size_t{i} * 64, 64, i);
    must_accept(post(pair.a, Work::send({pair.a.memory.piece(std::size_t{i} * 64, 64)})),
                "ibv_post_send");
  }
  const auto completions = next_many(pair.b.receives, 4);
  if (completions.size() != 4) return statuses(completions);
  for (std::uint8_t i = 0; i < 4; ++i) {
    if (completions[i].status != IBV_WC_SUCCESS) return word(completions[i].status);
    if (completions[i].wr_id != i || !memory.has_pattern(std::size_t{i} * 64, 64, i))
      return "out of order";
    if (completions[i].qp_num != pair.b.qp->qp_num) return "of another queue pair";
  }
  return "in order, bytes there";
}

// A second queue pair of b on the same queue, with its own peer.
struct Second {
  Second(Lab& lab, const Pair& pair) : a(lab.a) {
    ibv_qp_init_attr init = {};
    init.send_cq = pair.b.sends.get();
    init.recv_cq = pair.b.receives.get();
    init.srq = pair.b.srq.get();
    init.cap = EndPlan{}.cap;
    init.qp_type = IBV_QPT_RC;
    qp.reset(::ibv_create_qp(pair.b.pd.get(), &init));
    must(qp != nullptr, "ibv_create_qp");
    ibv_qp_attr attr = init_attr(kRemoteRights);
    must_accept(::ibv_modify_qp(qp.get(), &attr, kInitMask), "to INIT");
    attr = rtr_attr(lab.b, lab.a, a.qp->qp_num);
    must_accept(::ibv_modify_qp(qp.get(), &attr, kRtrMask), "to RTR");
    must_accept(modify(a, init_attr(kRemoteRights), kInitMask), "to INIT");
    must_accept(modify(a, rtr_attr(lab.a, lab.b, qp->qp_num), kRtrMask), "to RTR");
    must_accept(modify(a, rts_attr(), kRtsMask), "to RTS");
  }
  End a;
  Qp qp;
};

std::string two_queue_pairs(Lab& lab) {
  const Pair pair(lab, shared_plan());
  const Second second(lab, pair);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    must_accept(post_shared(pair.b, {pair.b.memory.piece(id * 64, 64)}, id), "ibv_post_srq_recv");
  }
  for (const End* end : {&pair.a, &second.a, &pair.a, &second.a}) {
    std::string status = run(*end, Work::send({end->memory.piece(0, 8)}));
    if (status != "SUCCESS") return status;
  }
  const auto completions = next_many(pair.b.receives, 4);
  std::set<std::uint64_t> ids;
  std::multiset<std::uint32_t> numbers;
  for (const ibv_wc& completion : completions) {
    ids.insert(completion.wr_id);
    numbers.insert(completion.qp_num);
  }
  return all_of("each its own receives",
                {{ids.size() == 4, "a receive was used twice"},
                 {numbers.count(pair.b.qp->qp_num) == 2, "not two of the first"},
                 {numbers.count(second.qp->qp_num) == 2, "not two of the second"}});
}

std::string empty(Lab& lab) {
  PairPlan plan = shared_plan();
  plan.link.rnr_retry = 1;
  const Pair pair(lab, plan);
  return run(pair.a, Work::send({pair.a.memory.piece(0, 8)}));
}

std::string empty_then_posted(Lab& lab) {
  PairPlan plan = shared_plan();
  plan.link.rnr_retry = 7;
  const Pair pair(lab, plan);
  must_accept(post(pair.a, Work::send({pair.a.memory.piece(0, 8)})), "ibv_post_send");
  if (next(pair.a.sends, kSilence)) return "does not wait";
  must_accept(post_shared(pair.b, {pair.b.memory.piece(0, 8)}), "ibv_post_srq_recv");
  return "waits, then " + outcome(pair.a.sends);
}

std::string write_with_immediate(Lab& lab) {
  const Pair pair(lab, shared_plan());
  const Region& target = pair.b.memory;
  must_accept(post_shared(pair.b, {}, 5), "ibv_post_srq_recv");
  const Work work =
      Work::write_imm({pair.a.memory.piece(0, 8)}, target.address(), target.rkey(), 99);
  std::string status = run(pair.a, work);
  const auto completion = next(pair.b.receives);
  if (!completion) return status + ", nothing received";
  return completion->wr_id == 5 && completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM
             ? status + ", received"
             : status + ", received otherwise";
}

std::string too_small(Lab& lab) {
  const Pair pair(lab, shared_plan());
  must_accept(post_shared(pair.b, {pair.b.memory.piece(0, 7)}), "ibv_post_srq_recv");
  std::string status = run(pair.a, Work::send({pair.a.memory.piece(0, 8)}));
  return status + ", receiver " + outcome(pair.b.receives);
}

std::string limit_event(Lab& lab) {
  const Pair pair(lab, shared_plan());
  const Listener listener(lab.b);
  for (int i = 0; i < 3; ++i) {
    must_accept(post_shared(pair.b, {pair.b.memory.piece(0, 8)}), "ibv_post_srq_recv");
  }
  must_accept(arm_limit(pair.b, 2), "ibv_modify_srq");
  const Work work = Work::send({pair.a.memory.piece(0, 8)});
  if (std::string status = run(pair.a, work); status != "SUCCESS") return status;
  if (std::string status = run(pair.a, work); status != "SUCCESS") return status;
  return listener.hear(pair.b.srq.get());
}

std::string limit_disarms(Lab& lab) {
  const Pair pair(lab, shared_plan());
  const Listener listener(lab.b);
  must_accept(post_shared(pair.b, {pair.b.memory.piece(0, 8)}), "ibv_post_srq_recv");
  must_accept(arm_limit(pair.b, 1), "ibv_modify_srq");
  (void)run(pair.a, Work::send({pair.a.memory.piece(0, 8)}));
  (void)listener.hear(pair.b.srq.get());
  ibv_srq_attr attr = {};
  must_accept(::ibv_query_srq(pair.b.srq.get(), &attr), "ibv_query_srq");
  return attr.srq_limit == 0 ? "back to 0" : "stays armed";
}

std::string last_of_queue_pair(Lab& lab) {
  const Pair pair(lab, shared_plan());
  const Listener listener(lab.b);
  must_accept(move_to(pair.b, IBV_QPS_ERR), "to ERR");
  return listener.hear(pair.b.qp.get());
}

// Receives that were not taken remain for the other queue pairs.
std::string rest_survives(Lab& lab) {
  const Pair pair(lab, shared_plan());
  const Second second(lab, pair);
  must_accept(post_shared(pair.b, {pair.b.memory.piece(0, 8)}, 7), "ibv_post_srq_recv");
  must_accept(move_to(pair.b, IBV_QPS_ERR), "to ERR");
  if (next(pair.b.receives, kSilence)) return "flushed";
  std::string status = run(second.a, Work::send({second.a.memory.piece(0, 8)}));
  const auto completion = next(pair.b.receives);
  return completion && completion->wr_id == 7 ? "stays, then " + status : status + ", nothing";
}

}  // namespace

void add_shared_receives(Catalogue& all) {
  const auto of = [](std::uint32_t depth, std::uint32_t pieces) {
    return [=](Lab& lab) { return create(lab, depth, pieces); };
  };
  const Catalogue ours = {
      {"srq.create", "accepted", of(kDepth, 1)},
      {"srq.create.0", kOpen, of(0, 1)},
      {"srq.create.greatest", "accepted",
       [](Lab& lab) { return create(lab, static_cast<std::uint32_t>(lab.a.attr.max_srq_wr), 1); }},
      {"srq.create.above_greatest", "refused EINVAL",
       [](Lab& lab) {
         return create(lab, static_cast<std::uint32_t>(lab.a.attr.max_srq_wr) + 1, 1);
       }},
      {"srq.create.too_many_pieces", "refused EINVAL",
       [](Lab& lab) {
         return create(lab, kDepth, static_cast<std::uint32_t>(lab.a.attr.max_srq_sge) + 1);
       }},
      {"srq.query", "at least as made", query},
      {"srq.limit.above_depth", "refused EINVAL", limit_above_depth},
      {"srq.destroy.in_use", "refused EBUSY", destroy_in_use},
      {"srq.post.too_many", "refused ENOMEM", too_many},
      {"srq.post.too_many_pieces", "refused EINVAL", too_many_pieces},
      {"srq.post.to_the_queue_pair", kOpen, receive_of_its_own},
      {"srq.order", "in order, bytes there", first_in_first_out},
      {"srq.two_queue_pairs", "each its own receives", two_queue_pairs},
      {"srq.empty", "RNR_RETRY_EXC_ERR", empty},
      {"srq.empty.then_posted", "waits, then SUCCESS", empty_then_posted},
      {"srq.write_imm", "SUCCESS, received", write_with_immediate},
      {"srq.receive_too_small", "REM_INV_REQ_ERR, receiver LOC_LEN_ERR", too_small},
      {"srq.limit.event", "SRQ_LIMIT_REACHED", limit_event},
      {"srq.limit.disarms", "back to 0", limit_disarms},
      {"srq.last_of_queue_pair", "QP_LAST_WQE_REACHED", last_of_queue_pair},
      {"srq.rest_survives", "stays, then SUCCESS", rest_survives},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
