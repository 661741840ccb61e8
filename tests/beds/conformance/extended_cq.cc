// SPDX-License-Identifier: Apache-2.0
// Resizing of completion queues, and extended polling.
#include <endian.h>

#include <cerrno>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

Work small_write(const Pair& pair, std::uint64_t id) {
  const Region& target = pair.b.memory;
  return Work::write({pair.a.memory.piece(0, 8)}, target.address(), target.rkey()).with_id(id);
}

// Resizes the queue with `waiting` completions in it, and polls them.
std::string resize(Lab& lab, int entries, std::uint64_t waiting) {
  PairPlan plan;
  plan.a.cqe = 16;
  const Pair pair(lab, plan);
  for (std::uint64_t id = 0; id < waiting; ++id) {
    must_accept(post(pair.a, small_write(pair, id)), "ibv_post_send");
  }
  pause(kSilence);  // they arrive and are not polled
  const int answer = ::ibv_resize_cq(pair.a.sends.get(), entries);
  const auto completions = next_many(pair.a.sends, waiting);
  if (completions.size() != waiting) return verdict(answer) + ", some are lost";
  for (std::uint64_t id = 0; id < waiting; ++id) {
    if (completions[id].wr_id != id) return verdict(answer) + ", out of order";
  }
  return verdict(answer) + (waiting != 0 ? ", all there" : "");
}

std::string resize_holds(Lab& lab) {
  PairPlan plan;
  plan.a.cqe = 4;
  plan.a.cap.max_send_wr = 256;
  const Pair pair(lab, plan);
  const int answer = ::ibv_resize_cq(pair.a.sends.get(), 200);
  if (answer != 0) return verdict(answer);
  for (std::uint64_t id = 0; id < 200; ++id) {
    must_accept(post(pair.a, small_write(pair, id)), "ibv_post_send");
  }
  pause(kSilence);
  return next_many(pair.a.sends, 200).size() == 200 ? "accepted, holds more" : "accepted, overrun";
}

struct CqEx {
  explicit CqEx(ibv_context* context, std::uint64_t fields) {
    ibv_cq_init_attr_ex init = {};
    init.cqe = 16;
    init.wc_flags = fields;
    cq = ::ibv_create_cq_ex(context, &init);
  }
  ~CqEx() {
    if (cq != nullptr) ::ibv_destroy_cq(::ibv_cq_ex_to_cq(cq));
  }
  CqEx(const CqEx&) = delete;
  CqEx& operator=(const CqEx&) = delete;
  ibv_cq_ex* cq = nullptr;
};

std::string create(Lab& lab, std::uint64_t fields) {
  const CqEx made(lab.a.context.get(), fields);
  return verdict_of_errno(made.cq != nullptr);
}

std::string poll_empty(Lab& lab) {
  const CqEx made(lab.a.context.get(), IBV_WC_STANDARD_FLAGS);
  must(made.cq != nullptr, "ibv_create_cq_ex");
  ibv_poll_cq_attr attr = {};
  return verdict(::ibv_start_poll(made.cq, &attr));
}

// Two messages with immediate data, received through an extended queue.
std::string poll_fields(Lab& lab) {
  const CqEx made(lab.b.context.get(), IBV_WC_STANDARD_FLAGS);
  must(made.cq != nullptr, "ibv_create_cq_ex");
  End a(lab.a);
  End b(lab.b);
  b.qp.reset();
  b.receives.reset();
  ibv_qp_init_attr init = {};
  init.send_cq = b.sends.get();
  init.recv_cq = ::ibv_cq_ex_to_cq(made.cq);
  init.cap = EndPlan{}.cap;
  init.qp_type = IBV_QPT_RC;
  b.qp.reset(::ibv_create_qp(b.pd.get(), &init));
  must(b.qp != nullptr, "ibv_create_qp");
  raise(b, a, IBV_QPS_RTS);
  raise(a, b, IBV_QPS_RTS);
  std::string answer = "nothing";
  for (std::uint64_t id = 1; id <= 2; ++id) {
    must_accept(post_receive(b, {b.memory.piece(0, 64)}, id), "ibv_post_recv");
  }
  for (std::uint32_t i = 1; i <= 2; ++i) {
    std::string status = run(a, Work::send_imm({a.memory.piece(0, 20 + i)}, 0x1000 + i));
    if (status != "SUCCESS") return status;
  }
  ibv_poll_cq_attr attr = {};
  int got = ::ibv_start_poll(made.cq, &attr);
  for (std::uint32_t i = 1; i <= 2 && got == 0; ++i) {
    answer = all_of("fields right",
                    {{made.cq->status == IBV_WC_SUCCESS, "status"},
                     {made.cq->wr_id == i, "wr_id"},
                     {::ibv_wc_read_opcode(made.cq) == IBV_WC_RECV, "opcode"},
                     {::ibv_wc_read_byte_len(made.cq) == 20 + i, "byte_len"},
                     {::ibv_wc_read_imm_data(made.cq) == htobe32(0x1000 + i), "imm_data"},
                     {::ibv_wc_read_qp_num(made.cq) == b.qp->qp_num, "qp_num"},
                     {(::ibv_wc_read_wc_flags(made.cq) & IBV_WC_WITH_IMM) != 0, "wc_flags"}});
    if (answer != "fields right") break;
    if (i == 1) got = ::ibv_next_poll(made.cq);
  }
  if (got != 0) answer = "only one: " + verdict(got);
  if (got == 0 && ::ibv_next_poll(made.cq) != ENOENT) answer = "more than two";
  if (answer != "nothing") ::ibv_end_poll(made.cq);
  b.qp.reset();
  return answer;
}

std::string memory_window(Lab& lab, ibv_mw_type type) {
  const Pd pd(::ibv_alloc_pd(lab.a.context.get()));
  ibv_mw* const window = ::ibv_alloc_mw(pd.get(), type);
  std::string answer = verdict_of_errno(window != nullptr);
  if (window != nullptr) ::ibv_dealloc_mw(window);
  return answer;
}

}  // namespace

void add_extended_cq(Catalogue& all) {
  const auto to = [](int entries, std::uint64_t waiting) {
    return [=](Lab& lab) { return resize(lab, entries, waiting); };
  };
  const Catalogue ours = {
      {"cq.resize.larger", "accepted, all there", to(1000, 8)},
      {"cq.resize.smaller", "accepted, all there", to(8, 4)},
      {"cq.resize.less_than_waits", "refused EINVAL, all there", to(1, 12)},
      {"cq.resize.0", "refused EINVAL", to(0, 0)},
      {"cq.resize.holds_more", "accepted, holds more", resize_holds},
      {"cq_ex.create", "accepted", [](Lab& lab) { return create(lab, IBV_WC_STANDARD_FLAGS); }},
      {"cq_ex.create.unknown_field", kOpen,
       [](Lab& lab) { return create(lab, std::uint64_t{1} << 40); }},
      {"cq_ex.poll.empty", "refused ENOENT", poll_empty},
      {"cq_ex.poll.fields", "fields right", poll_fields},
      {"mw.type_1", kOpen, [](Lab& lab) { return memory_window(lab, IBV_MW_TYPE_1); }},
      {"mw.type_2", kOpen, [](Lab& lab) { return memory_window(lab, IBV_MW_TYPE_2); }},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
