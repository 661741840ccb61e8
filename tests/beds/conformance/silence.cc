// SPDX-License-Identifier: Apache-2.0
// Peers that do not answer or are not ready: retries and their end.
#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

Work some_send(const End& end) { return Work::send({end.memory.piece(0, 8)}); }

std::string not_ready(Lab& lab, std::uint8_t rnr_retry) {
  PairPlan plan;
  plan.link.rnr_retry = rnr_retry;
  const Pair pair(lab, plan);
  return run(pair.a, some_send(pair.a));
}

std::string ready_later(Lab& lab) {
  PairPlan plan;
  plan.link.rnr_retry = 7;
  const Pair pair(lab, plan);
  must_accept(post(pair.a, some_send(pair.a)), "ibv_post_send");
  if (next(pair.a.sends, kSilence)) return "completes without a receive";
  must_accept(post_receive(pair.b, {pair.b.memory.piece(0, 8)}), "ibv_post_recv");
  return "waits, then " + outcome(pair.a.sends);
}

// The other end is in `state` when the write arrives.
std::string other_in(Lab& lab, ibv_qp_state state) {
  const End a(lab.a);
  const End b(lab.b);
  raise(a, b, IBV_QPS_RTS, impatient());
  raise(b, a, state == IBV_QPS_ERR ? IBV_QPS_RTS : state, impatient());
  if (state == IBV_QPS_ERR) must_accept(move_to(b, IBV_QPS_ERR), "to ERR");
  return run(a, Work::write({a.memory.piece(0, 8)}, b.memory.address(), b.memory.rkey()));
}

std::string nobody_at(Lab& lab, void (*mislead)(ibv_qp_attr& rtr)) {
  const End a(lab.a);
  const End b(lab.b);
  raise(b, a, IBV_QPS_RTS);
  raise(a, b, IBV_QPS_INIT);
  ibv_qp_attr rtr = rtr_attr(lab.a, lab.b, b.qp->qp_num);
  mislead(rtr);
  const int answer = modify(a, rtr, kRtrMask);
  if (answer != 0) return "RTR " + verdict(answer);
  must_accept(modify(a, rts_attr(impatient()), kRtsMask), "to RTS");
  return run(a, Work::write({a.memory.piece(0, 8)}, b.memory.address(), b.memory.rkey()));
}

std::string wrong_psn(Lab& lab) {
  const End a(lab.a);
  const End b(lab.b);
  LinkPlan plan = impatient();
  plan.send_psn = 1000;
  raise(a, b, IBV_QPS_RTS, plan);
  raise(b, a, IBV_QPS_RTS);
  return run(a, Work::write({a.memory.piece(0, 8)}, b.memory.address(), b.memory.rkey()));
}

// A queue pair accepts requests only of the one that it is connected to.
std::string stranger(Lab& lab) {
  const Pair pair(lab);
  const End third(lab.a);
  raise(third, pair.b, IBV_QPS_RTS, impatient());
  const Region& target = pair.b.memory;
  return run(third, Work::write({third.memory.piece(0, 8)}, target.address(), target.rkey()));
}

std::string comes_in_time(Lab& lab) {
  const End a(lab.a);
  const End b(lab.b);
  LinkPlan plan;
  plan.timeout = 16;  // seven attempts of 268 ms
  raise(a, b, IBV_QPS_RTS, plan);
  must_accept(post(a, Work::write({a.memory.piece(0, 8)}, b.memory.address(), b.memory.rkey())),
              "ibv_post_send");
  raise(b, a, IBV_QPS_RTS);
  return outcome(a.sends);
}

// timeout 0 means an infinite timeout.
std::string endless(Lab& lab) {
  const End a(lab.a);
  const End b(lab.b);
  LinkPlan plan = impatient();
  plan.timeout = 0;
  raise(a, b, IBV_QPS_RTS, plan);
  must_accept(post(a, Work::write({a.memory.piece(0, 8)}, b.memory.address(), b.memory.rkey())),
              "ibv_post_send");
  return next(a.sends, Milliseconds{1500}) ? "gives up" : "waits";
}

std::string state_after(Lab& lab) {
  const End a(lab.a);
  const End b(lab.b);
  raise(a, b, IBV_QPS_RTS, impatient());
  (void)run(a, Work::write({a.memory.piece(0, 8)}, b.memory.address(), b.memory.rkey()));
  return word(state_of(a));
}

}  // namespace

void add_silence(Catalogue& all) {
  const auto other = [](ibv_qp_state state) {
    return [=](Lab& lab) { return other_in(lab, state); };
  };
  const auto nobody = [](void (*mislead)(ibv_qp_attr&)) {
    return [=](Lab& lab) { return nobody_at(lab, mislead); };
  };
  const char* gone = "RETRY_EXC_ERR";
  const Catalogue ours = {
      {"rnr.retry_0", "RNR_RETRY_EXC_ERR", [](Lab& lab) { return not_ready(lab, 0); }},
      {"rnr.retry_2", "RNR_RETRY_EXC_ERR", [](Lab& lab) { return not_ready(lab, 2); }},
      {"rnr.retry_7", "waits, then SUCCESS", ready_later},
      {"retry.other_in_RESET", gone, other(IBV_QPS_RESET)},
      {"retry.other_in_INIT", gone, other(IBV_QPS_INIT)},
      {"retry.other_in_ERR", gone, other(IBV_QPS_ERR)},
      {"retry.other_comes_in_time", "SUCCESS", comes_in_time},
      {"retry.wrong_dest_qpn", gone, nobody([](ibv_qp_attr& rtr) { rtr.dest_qp_num ^= 0x5555; })},
      // A device that resolves the address in the modify fails earlier.
      {"retry.wrong_dgid", "RETRY_EXC_ERR|RTR refused ETIMEDOUT|RTR refused EHOSTUNREACH",
       nobody([](ibv_qp_attr& rtr) {
         rtr.ah_attr.grh.dgid.raw[15] ^= 0x70;
         rtr.ah_attr.dlid ^= 0x70;
       })},
      {"address.hop_limit_0", kOpen,
       nobody([](ibv_qp_attr& rtr) { rtr.ah_attr.grh.hop_limit = 0; })},
      {"retry.wrong_psn", gone, wrong_psn},
      {"retry.stranger", gone, stranger},
      {"retry.timeout_0", "waits", endless},
      {"retry.state_after", "ERR", state_after},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
