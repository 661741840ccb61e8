// SPDX-License-Identifier: Apache-2.0
// Creation and destruction of queue pairs.
#include <cerrno>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

struct Parts {
  explicit Parts(const Device& device)
      : pd(::ibv_alloc_pd(device.context.get())),
        cq(::ibv_create_cq(device.context.get(), 16, nullptr, nullptr, 0)) {
    must(pd != nullptr && cq != nullptr, "parts of a queue pair");
    init.send_cq = cq.get();
    init.recv_cq = cq.get();
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = 4,
                .max_recv_wr = 4,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
  }
  std::string create() {
    const Qp qp(::ibv_create_qp(pd.get(), &init));
    return verdict_of_errno(qp != nullptr);
  }
  Pd pd;
  Cq cq;
  ibv_qp_init_attr init{};
};

std::string of_type(Lab& lab, ibv_qp_type type) {
  Parts parts(lab.a);
  parts.init.qp_type = type;
  return parts.create();
}

std::string granted(Lab& lab) {
  Parts parts(lab.a);
  const ibv_qp_cap asked = {.max_send_wr = 7,
                            .max_recv_wr = 9,
                            .max_send_sge = 3,
                            .max_recv_sge = 2,
                            .max_inline_data = 20};
  parts.init.cap = asked;
  const Qp qp(::ibv_create_qp(parts.pd.get(), &parts.init));
  if (qp == nullptr) return verdict_of_errno(false);
  const ibv_qp_cap& got = parts.init.cap;
  return all_of("at least as asked", {{got.max_send_wr >= asked.max_send_wr, "max_send_wr"},
                                      {got.max_recv_wr >= asked.max_recv_wr, "max_recv_wr"},
                                      {got.max_send_sge >= asked.max_send_sge, "max_send_sge"},
                                      {got.max_recv_sge >= asked.max_recv_sge, "max_recv_sge"},
                                      {got.max_inline_data >= asked.max_inline_data, "inline"}});
}

std::string with_cap(Lab& lab, void (*change)(ibv_qp_cap& cap, const ibv_device_attr& attr)) {
  Parts parts(lab.a);
  change(parts.init.cap, lab.a.attr);
  return parts.create();
}

std::string says_who_it_is(Lab& lab) {
  const End one(lab.a);
  const End other(lab.a);
  const ibv_qp& qp = *one.qp;
  return all_of("consistent", {{qp.qp_num != other.qp->qp_num, "numbers alike"},
                               {qp.qp_num >= 2 && qp.qp_num < (1u << 24), "number out of range"},
                               {qp.state == IBV_QPS_RESET, "state"},
                               {state_of(one) == IBV_QPS_RESET, "state as queried"},
                               {qp.pd == one.pd.get(), "pd"},
                               {qp.send_cq == one.sends.get(), "send_cq"},
                               {qp.recv_cq == one.receives.get(), "recv_cq"},
                               {qp.qp_type == IBV_QPT_RC, "type"}});
}

std::string queried_init(Lab& lab) {
  EndPlan plan;
  plan.signal_all = true;
  const End end(lab.a, plan);
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  must_accept(::ibv_query_qp(end.qp.get(), &attr, IBV_QP_CAP, &init), "ibv_query_qp");
  return all_of("consistent", {{init.send_cq == end.sends.get(), "send_cq"},
                               {init.recv_cq == end.receives.get(), "recv_cq"},
                               {init.qp_type == IBV_QPT_RC, "type"},
                               {init.sq_sig_all == 1, "sq_sig_all"},
                               {init.cap.max_send_wr >= plan.cap.max_send_wr, "max_send_wr"},
                               {attr.cap.max_recv_wr >= plan.cap.max_recv_wr, "max_recv_wr"}});
}

std::string destroy_with_work(Lab& lab) {
  LinkPlan patient;
  patient.rnr_retry = 7;
  Pair pair(lab, {.link = patient});
  must_accept(post_receive(pair.a, {pair.a.memory.piece(0, 8)}), "ibv_post_recv");
  // Waits for a receive that never comes.
  must_accept(post(pair.a, Work::send({pair.a.memory.piece(0, 8)})), "ibv_post_send");
  return verdict(::ibv_destroy_qp(pair.a.qp.release()));
}

std::string peer_of_destroyed(Lab& lab) {
  PairPlan plan;
  plan.link = impatient();
  Pair pair(lab, plan);
  must_accept(::ibv_destroy_qp(pair.b.qp.release()), "ibv_destroy_qp");
  const Region& target = pair.b.memory;
  return run(pair.a, Work::write({pair.a.memory.piece(0, 8)}, target.address(), target.rkey()));
}

}  // namespace

void add_qp(Catalogue& all) {
  const auto type = [](ibv_qp_type of) { return [of](Lab& lab) { return of_type(lab, of); }; };
  const auto cap = [](void (*change)(ibv_qp_cap&, const ibv_device_attr&)) {
    return [change](Lab& lab) { return with_cap(lab, change); };
  };
  const Catalogue ours = {
      {"qp.create.rc", "accepted", type(IBV_QPT_RC)},
      {"qp.create.uc", kOpen, type(IBV_QPT_UC)},
      {"qp.create.ud", "accepted", type(IBV_QPT_UD)},
      {"qp.create.granted", "at least as asked", granted},
      {"qp.create.greatest_depth", "accepted", cap([](ibv_qp_cap& c, const ibv_device_attr& attr) {
         c.max_send_wr = c.max_recv_wr = static_cast<std::uint32_t>(attr.max_qp_wr);
       })},
      {"qp.create.too_many_sends", "refused EINVAL|refused ENOMEM",
       cap([](ibv_qp_cap& c, const ibv_device_attr& attr) {
         c.max_send_wr = static_cast<std::uint32_t>(attr.max_qp_wr) + 1;
       })},
      {"qp.create.too_many_receives", "refused EINVAL|refused ENOMEM",
       cap([](ibv_qp_cap& c, const ibv_device_attr& attr) {
         c.max_recv_wr = static_cast<std::uint32_t>(attr.max_qp_wr) + 1;
       })},
      {"qp.create.too_many_pieces", "refused EINVAL|refused ENOMEM",
       cap([](ibv_qp_cap& c, const ibv_device_attr& attr) {
         c.max_send_sge = static_cast<std::uint32_t>(attr.max_sge) + 1;
       })},
      {"qp.create.too_much_inline", "refused EINVAL|refused ENOMEM",
       cap([](ibv_qp_cap& c, const ibv_device_attr&) { c.max_inline_data = 1 << 20; })},
      {"qp.create.depth_zero", kOpen,
       cap([](ibv_qp_cap& c, const ibv_device_attr&) { c.max_send_wr = c.max_recv_wr = 0; })},
      {"qp.says_who_it_is", "consistent", says_who_it_is},
      {"qp.query.init_attributes", "consistent", queried_init},
      {"qp.destroy.with_work", "accepted", destroy_with_work},
      {"qp.destroy.peer_hears_nothing", "RETRY_EXC_ERR", peer_of_destroyed},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
