// SPDX-License-Identifier: Apache-2.0
// Work of a queue pair that moves to ERR, and the queue pair afterwards.
#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

constexpr std::uint32_t kNoKey = 0x5a5a5a5a;  // makes any key invalid

Work small_write(const Pair& pair, std::uint32_t key_error = 0) {
  const Region& target = pair.b.memory;
  return Work::write({pair.a.memory.piece(0, 8)}, target.address(), target.rkey() ^ key_error);
}

std::string ids_in_order(const std::vector<ibv_wc>& completions) {
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (completions[i].wr_id != i) return ", out of order";
  }
  return "";
}

std::string behind_a_failure(Lab& lab, bool signalled) {
  const Pair pair(lab);
  for (std::uint64_t id = 0; id < 3; ++id) {
    const Work work = small_write(pair, id == 0 ? kNoKey : 0).with_id(id);
    // A queue pair that is already in ERR accepts them, too.
    must_accept(post(pair.a, signalled ? work : work.quiet()), "ibv_post_send");
  }
  const auto completions = next_many(pair.a.sends, 3);
  return statuses(completions) + ids_in_order(completions);
}

std::string behind_a_failure_lands(Lab& lab) {
  Pair pair(lab);
  pair.a.memory.fill(0, 8, 1);
  must_accept(post(pair.a, small_write(pair, kNoKey)), "ibv_post_send");
  must_accept(post(pair.a, small_write(pair)), "ibv_post_send");
  (void)next_many(pair.a.sends, 2);
  return pair.b.memory.has_pattern(0, 8, 1) ? "lands" : "does not land";
}

std::string all_flushed(const Cq& cq) {
  const auto completions = next_many(cq, 4);
  for (const ibv_wc& completion : completions) {
    if (completion.status != IBV_WC_WR_FLUSH_ERR) return word(completion.status);
  }
  if (next(cq, kSilence)) return "more than 4";
  return std::to_string(completions.size()) + " of 4" + ids_in_order(completions);
}

std::string receives_on_err(Lab& lab, ibv_qp_state from) {
  const End a(lab.a);
  const End b(lab.b);
  raise(a, b, from);
  for (std::uint64_t id = 0; id < 4; ++id) {
    must_accept(post_receive(a, {a.memory.piece(0, 8)}, id), "ibv_post_recv");
  }
  must_accept(move_to(a, IBV_QPS_ERR), "to ERR");
  return all_flushed(a.receives);
}

// Sends that wait for a receive. The first has been tried before.
std::string sends_on_err(Lab& lab, bool signalled) {
  PairPlan plan;
  plan.link.rnr_retry = 7;
  const Pair pair(lab, plan);
  const Work work = Work::send({pair.a.memory.piece(0, 8)});
  for (std::uint64_t id = 0; id < 4; ++id) {
    const Work one = work.with_id(id);
    must_accept(post(pair.a, signalled ? one : one.quiet()), "ibv_post_send");
  }
  must_accept(move_to(pair.a, IBV_QPS_ERR), "to ERR");
  return all_flushed(pair.a.sends);
}

// Work that completed before the move to ERR keeps its status.
std::string unpolled_before_err(Lab& lab) {
  const Pair pair(lab);
  must_accept(post_receive(pair.b, {pair.b.memory.piece(0, 8)}), "ibv_post_recv");
  must_accept(post(pair.a, Work::send({pair.a.memory.piece(0, 8)})), "ibv_post_send");
  if (!next(pair.a.sends)) return "nothing";
  must_accept(move_to(pair.b, IBV_QPS_ERR), "to ERR");
  return outcome(pair.b.receives);
}

std::string state_of_requester(Lab& lab) {
  const Pair pair(lab);
  (void)run(pair.a, small_write(pair, kNoKey));
  return word(state_of(pair.a));
}

std::string state_of_responder(Lab& lab) {
  const Pair pair(lab);
  (void)run(pair.a, small_write(pair, kNoKey));
  return word(state_of(pair.b));
}

std::string receives_of_responder(Lab& lab) {
  const Pair pair(lab);
  must_accept(post_receive(pair.b, {pair.b.memory.piece(0, 8)}), "ibv_post_recv");
  (void)run(pair.a, small_write(pair, kNoKey));
  return outcome(pair.b.receives);
}

std::string connects_anew(Lab& lab) {
  const Pair pair(lab);
  (void)run(pair.a, small_write(pair, kNoKey));
  for (const End* end : {&pair.a, &pair.b}) {
    must_accept(move_to(*end, IBV_QPS_RESET), "to RESET");
  }
  (void)next_many(pair.a.sends, 8, kSilence);
  raise(pair.a, pair.b, IBV_QPS_RTS);
  raise(pair.b, pair.a, IBV_QPS_RTS);
  return run(pair.a, small_write(pair));
}

std::string reset_forgets_receives(Lab& lab) {
  const Pair pair(lab);
  must_accept(post_receive(pair.b, {pair.b.memory.piece(0, 8)}), "ibv_post_recv");
  must_accept(move_to(pair.a, IBV_QPS_RESET), "to RESET");
  must_accept(move_to(pair.b, IBV_QPS_RESET), "to RESET");
  if (next(pair.b.receives, kSilence)) return "completes them";
  LinkPlan plan;
  plan.rnr_retry = 0;
  raise(pair.a, pair.b, IBV_QPS_RTS, plan);
  raise(pair.b, pair.a, IBV_QPS_RTS, plan);
  const std::string status = run(pair.a, Work::send({pair.a.memory.piece(0, 8)}));
  return status == "RNR_RETRY_EXC_ERR" ? "forgets them" : status;
}

std::string reset_and_unpolled(Lab& lab) {
  const Pair pair(lab);
  must_accept(post(pair.a, small_write(pair)), "ibv_post_send");
  must_accept(post(pair.a, small_write(pair)), "ibv_post_send");
  if (!next(pair.a.sends)) return "nothing";
  pause(kSilence);  // the second completion arrives and is not polled
  must_accept(move_to(pair.a, IBV_QPS_RESET), "to RESET");
  return next(pair.a.sends, kSilence) ? "stay" : "vanish";
}

}  // namespace

void add_flush(Catalogue& all) {
  const char* order = "REM_ACCESS_ERR, WR_FLUSH_ERR, WR_FLUSH_ERR";
  const Catalogue ours = {
      {"flush.behind_a_failure", order, [](Lab& lab) { return behind_a_failure(lab, true); }},
      {"flush.behind_a_failure.unsignalled", order,
       [](Lab& lab) { return behind_a_failure(lab, false); }},
      {"flush.behind_a_failure.bytes", "does not land", behind_a_failure_lands},
      {"flush.receives.in_RTS", "4 of 4",
       [](Lab& lab) { return receives_on_err(lab, IBV_QPS_RTS); }},
      {"flush.receives.in_RTR", "4 of 4",
       [](Lab& lab) { return receives_on_err(lab, IBV_QPS_RTR); }},
      {"flush.receives.in_INIT", "4 of 4",
       [](Lab& lab) { return receives_on_err(lab, IBV_QPS_INIT); }},
      {"flush.sends", "4 of 4", [](Lab& lab) { return sends_on_err(lab, true); }},
      {"flush.sends.unsignalled", "4 of 4", [](Lab& lab) { return sends_on_err(lab, false); }},
      {"flush.unpolled_before", "SUCCESS", unpolled_before_err},
      {"flush.state.requester", "ERR", state_of_requester},
      {"flush.state.responder", "ERR", state_of_responder},
      {"flush.receives_of_responder", "WR_FLUSH_ERR", receives_of_responder},
      {"reset.connects_anew", "SUCCESS", connects_anew},
      {"reset.receives", "forgets them", reset_forgets_receives},
      {"reset.unpolled_completions", kOpen, reset_and_unpolled},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
