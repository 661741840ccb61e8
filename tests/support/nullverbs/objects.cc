// SPDX-License-Identifier: Apache-2.0
//
// Creates, changes and destroys memory regions, CQs and QPs.
#include "tests/support/nullverbs/objects.h"

#include <sys/mman.h>

#include <cerrno>
#include <mutex>

#include "tests/support/nullverbs/counters.h"
#include "tests/support/nullverbs/device_limits.h"
#include "tests/support/nullverbs/making.h"
#include "tests/support/nullverbs/operations.h"
#include "tests/support/nullverbs/tables.h"

// verbs.h turns it into a macro.
#undef ibv_reg_mr

namespace nullverbs {
namespace {

Cq* make_cq(ibv_context* context, std::uint32_t entries, void* user, bool is_extended) {
  if (entries == 0 || entries > kMaxCqe) return refuse<Cq>(EINVAL);
  const std::size_t bytes = is_extended ? sizeof(Cq) : offsetof(Cq, plain) + sizeof(ibv_cq);
  // Members that a plain ibv_cq does not have are not written. The memory is zeroed already.
  auto* const cq = static_cast<Cq*>(Arena::instance().take(bytes));
  count_surely(&NullverbsReport::live_objects);
  cq->is_extended = is_extended;
  cq->ring.set_limit(entries);
  cq->plain.context = context;
  cq->plain.cq_context = user;
  cq->plain.cqe = static_cast<int>(entries);
  return cq;
}

bool can_hold(const ibv_qp_cap& cap) noexcept {
  return cap.max_send_wr <= kMaxQpWr && cap.max_recv_wr <= kMaxQpWr &&
         cap.max_send_sge <= kMaxSge && cap.max_recv_sge <= 1 && cap.max_inline_data <= kMaxInline;
}

// When a queue pair is destroyed, a device's library removes its completions from the queues. This
// one leaves them there, but counts as a user of the queues.
void clean_cqs(const Qp& qp) noexcept {
  const Visit sent(Cq::of(qp.base.send_cq).one_thread);
  if (qp.base.recv_cq != qp.base.send_cq) const Visit received(Cq::of(qp.base.recv_cq).one_thread);
}

// Each state is reached from the one before it; RESET and ERR from any.
bool may_follow(ibv_qp_state from, ibv_qp_state to) noexcept {
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return true;
  if (to == IBV_QPS_INIT || to == IBV_QPS_RTR || to == IBV_QPS_RTS) return from + 1 == to;
  return false;
}

}  // namespace

void Qp::set_state(ibv_qp_state to) {
  const std::lock_guard guard(lock);
  state_code = static_cast<std::uint8_t>(to);
  base.state = to;
  if (to == IBV_QPS_ERR) flush_receives();
  if (to == IBV_QPS_RESET) {
    receives.clear();
    silent = 0;
    sends_open.store(0, std::memory_order_relaxed);
  }
}

// Called with the lock held.
void Qp::flush_receives() {
  while (!receives.empty()) {
    Cq::of(base.recv_cq)
        .push({.wr_id = receives.pop().wr_id,
               .qp_num = base.qp_num,
               .byte_len = 0,
               .imm_data = 0,
               .frees = 0,
               .status = IBV_WC_WR_FLUSH_ERR,
               .opcode = 0,
               .is_receive = 1,
               .has_immediate = 0});
  }
}

ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex* init) {
  if (init->qp_type != IBV_QPT_RC || init->srq != nullptr || init->pd == nullptr ||
      init->send_cq == nullptr || init->recv_cq == nullptr || !can_hold(init->cap) ||
      (init->comp_mask & ~std::uint32_t{IBV_QP_INIT_ATTR_PD}) != 0) {
    return refuse<ibv_qp>(EINVAL);
  }
  Domain& domain = Domain::of(init->pd);
  if (domain.origin != nullptr && refuses("qp")) return nullptr;
  auto* const qp = make<Qp>();
  ++domain.users;
  qp->base.context = init->pd->context;
  qp->base.qp_context = init->qp_context;
  qp->base.pd = init->pd;
  qp->base.send_cq = init->send_cq;
  qp->base.recv_cq = init->recv_cq;
  qp->base.qp_type = IBV_QPT_RC;
  qp->signals_all = init->sq_sig_all != 0;
  qp->domain = domain.number;
  qp->cap = init->cap;
  qp->receives.set_limit(init->cap.max_recv_wr);
  qp->base.qp_num = Tables::instance().add_qp(*qp);
  if (domain.thread_domain != nullptr) {
    qp->one_sender.give();
    qp->one_receiver.give();
    count(&NullverbsReport::queues_in_parent_domains);
  }
  return &qp->base;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* init) {
  constexpr std::uint32_t kParts = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  const auto has = [&](std::uint32_t part) { return (init->comp_mask & part) != 0; };
  const std::uint32_t flags = has(IBV_CQ_INIT_ATTR_MASK_FLAGS) ? init->flags : 0;
  Domain* const domain = has(IBV_CQ_INIT_ATTR_MASK_PD) ? &Domain::of(init->parent_domain) : nullptr;
  // Its completions are read with ibv_poll_cq.
  if ((init->comp_mask & ~kParts) != 0 || init->wc_flags != 0 || init->channel != nullptr ||
      (flags & ~std::uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}) != 0) {
    return refuse<ibv_cq_ex>(EOPNOTSUPP);
  }
  if (domain != nullptr && domain->origin == nullptr) return refuse<ibv_cq_ex>(EINVAL);
  if (domain != nullptr && refuses("cq")) return nullptr;
  Cq* const cq = make_cq(context, init->cqe, init->cq_context, true);
  if (cq == nullptr) return nullptr;
  cq->domain = domain;
  if (domain != nullptr) ++domain->users;
  if (flags != 0 || (domain != nullptr && domain->thread_domain != nullptr)) {
    cq->one_thread.give();
    count(&NullverbsReport::single_threaded_cqs);
  }
  return &cq->extended;
}

}  // namespace nullverbs

using nullverbs::Cq;
using nullverbs::Domain;
using nullverbs::Qp;
using nullverbs::Tables;

extern "C" {

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova,
                         unsigned access) {
  constexpr unsigned kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  auto* const mr = nullverbs::make<ibv_mr>();
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = addr;
  mr->length = length;
  mr->lkey = mr->rkey =
      Tables::instance().add_region({.address = iova,
                                     .length = length,
                                     .shift = reinterpret_cast<std::uint64_t>(addr) - iova,
                                     .key = 0,
                                     .domain = Domain::of(pd).number & 0xffff,
                                     .access = access & kRights & 0xffff});
  return mr;
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, std::size_t length, int access) {
  return ibv_reg_mr_iova2(pd, addr, length, reinterpret_cast<std::uint64_t>(addr),
                          static_cast<unsigned>(access));
}

int ibv_dereg_mr(ibv_mr* mr) {
  Tables::instance().remove_region(mr->lkey);
  return nullverbs::unmake(mr);
}

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* user, ibv_comp_channel* channel, int) {
  if (cqe < 0 || channel != nullptr) return nullverbs::refuse<ibv_cq>(EINVAL);
  Cq* const cq = nullverbs::make_cq(context, static_cast<std::uint32_t>(cqe), user, false);
  return cq != nullptr ? &cq->plain : nullptr;
}

int ibv_destroy_cq(ibv_cq* base) {
  Cq& cq = Cq::of(base);
  cq.ring.free();
  if (cq.domain != nullptr) --cq.domain->users;
  nullverbs::count_surely(&NullverbsReport::live_objects, -1);
  nullverbs::Arena::instance().give_back(&cq, cq.bytes());
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  ibv_qp_init_attr_ex extended = {};
  extended.qp_context = init->qp_context;
  extended.send_cq = init->send_cq;
  extended.recv_cq = init->recv_cq;
  extended.srq = init->srq;
  extended.cap = init->cap;
  extended.qp_type = init->qp_type;
  extended.sq_sig_all = init->sq_sig_all;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = pd;
  return nullverbs::create_qp_ex(pd->context, &extended);
}

int ibv_modify_qp(ibv_qp* base, ibv_qp_attr* attr, int mask) {
  Qp& qp = Qp::of(base);
  if ((mask & IBV_QP_STATE) != 0 && !nullverbs::may_follow(qp.state(), attr->qp_state)) {
    nullverbs::count(&NullverbsReport::failures);
    return EINVAL;
  }
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) qp.access = attr->qp_access_flags;
  if ((mask & IBV_QP_DEST_QPN) != 0) qp.peer = attr->dest_qp_num;
  if ((mask & IBV_QP_STATE) == 0) return 0;
  if (attr->qp_state == IBV_QPS_RESET) nullverbs::clean_cqs(qp);
  qp.set_state(attr->qp_state);
  return 0;
}

int ibv_query_qp(ibv_qp* base, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  const Qp& qp = Qp::of(base);
  *attr = {};
  attr->qp_state = attr->cur_qp_state = qp.state();
  attr->dest_qp_num = qp.peer;
  attr->qp_access_flags = qp.access;
  attr->cap = qp.cap;
  *init = {};
  init->send_cq = base->send_cq;
  init->recv_cq = base->recv_cq;
  init->cap = qp.cap;
  init->qp_type = IBV_QPT_RC;
  return 0;
}

int ibv_destroy_qp(ibv_qp* base) {
  Qp& qp = Qp::of(base);
  Tables::instance().remove_qp(base->qp_num);
  nullverbs::clean_cqs(qp);
  qp.set_state(IBV_QPS_RESET);  // a thread that has found it already cannot use it
  qp.receives.free();
  --Domain::of(base->pd).users;
  return nullverbs::unmake(&qp);
}

// Vendor 0, so that there is nothing to agree on.
int ibv_query_ece(ibv_qp*, ibv_ece* ece) {
  *ece = {};
  return 0;
}
int ibv_set_ece(ibv_qp*, ibv_ece*) { return EOPNOTSUPP; }

int ibv_fork_init() { return 0; }

const NullverbsReport* nullverbs_report() {
  nullverbs::report.memory = nullverbs::Arena::instance().base();
  nullverbs::report.memory_bytes = nullverbs::Arena::kReserved;
  return &nullverbs::report;
}

}  // extern "C"
