// SPDX-License-Identifier: Apache-2.0
// Asynchronous events: which event a context gets, and for which object.
#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

std::string first_message_in_rtr(Lab& lab) {
  const Listener listener(lab.b);
  const End a(lab.a);
  const End b(lab.b);
  raise(b, a, IBV_QPS_RTR);
  raise(a, b, IBV_QPS_RTS);
  must_accept(post_receive(b, {b.memory.piece(0, 8)}), "ibv_post_recv");
  const std::string status = run(a, Work::send({a.memory.piece(0, 8)}));
  return status == "SUCCESS" ? listener.hear(b.qp.get()) : status;
}

// The event of the target of a bad request. Only the target's context gets one.
std::string of_a_bad_request(Lab& lab, bool to_target, unsigned qp_rights,
                             std::uint32_t key_error) {
  const Listener listener(to_target ? lab.b : lab.a);
  PairPlan plan;
  plan.b.qp_rights = qp_rights;
  const Pair pair(lab, plan);
  const Region& target = pair.b.memory;
  const auto piece = pair.a.memory.piece(0, 8);
  (void)run(pair.a, Work::write({piece}, target.address(), target.rkey() ^ key_error));
  return listener.hear((to_target ? pair.b : pair.a).qp.get());
}

std::string drained(Lab& lab) {
  const Listener listener(lab.a);
  const Pair pair(lab);
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = 1;
  const int answer = modify(pair.a, attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
  return answer != 0 ? verdict(answer) : listener.hear(pair.a.qp.get());
}

// Overruns the completion queue of the writes. Returns the event, the state, and the result of a
// poll.
struct Overrun {
  explicit Overrun(Lab& lab) : listener(lab.a), pair(lab, plan()) {
    const auto room = static_cast<std::size_t>(pair.a.sends->cqe);
    const Region& target = pair.b.memory;
    const Work work = Work::write({pair.a.memory.piece(0, 8)}, target.address(), target.rkey());
    for (std::size_t i = 0; i < room + 8; ++i) {
      must_accept(post(pair.a, work), "ibv_post_send");
    }
    event = listener.hear(pair.a.sends.get());
  }
  static PairPlan plan() {
    PairPlan plan;
    plan.a.cqe = 4;
    plan.a.cap.max_send_wr = 600;
    return plan;
  }
  Listener listener;
  Pair pair;
  std::string event;
};

std::string overrun_event(Lab& lab) { return Overrun(lab).event; }

std::string overrun_state(Lab& lab) {
  const Overrun overrun(lab);
  return word(state_of(overrun.pair.a));
}

std::string overrun_poll(Lab& lab) {
  const Overrun overrun(lab);
  const auto room = static_cast<std::size_t>(overrun.pair.a.sends->cqe);
  const auto completions = next_many(overrun.pair.a.sends, room, kSilence);
  ibv_wc completion = {};
  const int last = ::ibv_poll_cq(overrun.pair.a.sends.get(), 1, &completion);
  return (completions.size() == room ? "all that had room, then " : "fewer than had room, then ") +
         std::to_string(last);
}

}  // namespace

void add_events(Catalogue& all) {
  const auto bad = [](bool to_target, unsigned rights, std::uint32_t key_error) {
    return [=](Lab& lab) { return of_a_bad_request(lab, to_target, rights, key_error); };
  };
  constexpr std::uint32_t kNoKey = 0x5a5a5a5a;
  const Catalogue ours = {
      {"event.first_message_in_RTR", "COMM_EST", first_message_in_rtr},
      {"event.bad_key.target", "QP_ACCESS_ERR", bad(true, kRemoteRights, kNoKey)},
      {"event.bad_key.requester", "no event", bad(false, kRemoteRights, kNoKey)},
      {"event.not_allowed.target", "QP_REQ_ERR", bad(true, 0, 0)},
      {"event.drained", "SQ_DRAINED", drained},
      {"event.cq_overrun", "CQ_ERR", overrun_event},
      {"event.cq_overrun.poll", kOpen, overrun_poll},
      {"event.cq_overrun.state_of_qp", "ERR", overrun_state},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
