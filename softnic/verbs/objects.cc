// SPDX-License-Identifier: Apache-2.0
// The verbs for protection domains, memory regions, completion queues and queue pairs.
#include <cerrno>

#include "softnic/nic/cq.h"
#include "softnic/nic/cq_ex.h"
#include "softnic/nic/limits.h"
#include "softnic/nic/mr.h"
#include "softnic/nic/qp.h"
#include "softnic/verbs/call_checks.h"
#include "softnic/verbs/extended_queries.h"

// verbs.h defines macros of these names.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

using softnic::Context;
using softnic::Cq;
using softnic::is_dead;
using softnic::is_inherited;
using softnic::Mr;
using softnic::Pd;
using softnic::Qp;
using softnic::refusal_to_change;
using softnic::take_command_time;

namespace softnic {
namespace {

Cq* create_cq(ibv_context* context, int cqe, void* user, ibv_comp_channel* channel, int vector) {
  if (is_dead(context)) return nullptr;
  const bool foreign_channel = channel != nullptr && channel->context != context;
  if (vector < 0 || vector >= context->num_comp_vectors || foreign_channel) {
    errno = EINVAL;
    return nullptr;
  }
  return Cq::create(Context::of(context), cqe, user,
                    channel != nullptr ? &CompChannel::of(channel) : nullptr);
}

}  // namespace

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* init) {
  if (is_dead(context)) return nullptr;
  if ((init->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || init->pd == nullptr ||
      init->pd->context != context) {
    errno = EINVAL;
    return nullptr;
  }
  Qp* qp = Qp::create(Pd::of(init->pd), *init);
  return qp != nullptr ? &qp->qp_base : nullptr;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* init) {
  constexpr std::uint32_t kKnownFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  const bool flags_given = (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
  if ((init->comp_mask & ~std::uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS}) != 0 ||
      (init->wc_flags & ~kReadableFields) != 0 ||
      (flags_given && (init->flags & ~kKnownFlags) != 0)) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  if (init->cqe > static_cast<std::uint32_t>(kMaxCqe)) {
    errno = EINVAL;
    return nullptr;
  }
  return create_cq(context, static_cast<int>(init->cqe), init->cq_context, init->channel,
                   static_cast<int>(init->comp_vector));
}

}  // namespace softnic

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return is_dead(context) ? nullptr : new Pd(Context::of(context));
}

int ibv_dealloc_pd(ibv_pd* pd) {
  if (Pd::of(pd).children.load() != 0) return EBUSY;
  delete &Pd::of(pd);
  return 0;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova,
                         unsigned int access) {
  take_command_time(pd->context);
  if (is_dead(pd->context)) return nullptr;
  return softnic::register_memory(Pd::of(pd), addr, length, iova, access);
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova,
                        int access) {
  return ibv_reg_mr_iova2(pd, addr, length, iova, static_cast<unsigned int>(access));
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, std::size_t length, int access) {
  return ibv_reg_mr_iova(pd, addr, length, reinterpret_cast<std::uint64_t>(addr), access);
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                          int fd, int access) {
  take_command_time(pd->context);
  if (is_dead(pd->context)) return nullptr;
  return softnic::register_dmabuf(Pd::of(pd), fd, offset, length, iova,
                                  static_cast<unsigned int>(access));
}

int ibv_dereg_mr(ibv_mr* mr) {
  if (is_inherited(mr->context)) return 0;
  take_command_time(mr->context);
  softnic::deregister_memory(&Mr::of(mr));
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* user, ibv_comp_channel* channel,
                      int vector) {
  take_command_time(context);
  Cq* const cq = softnic::create_cq(context, cqe, user, channel, vector);
  return cq != nullptr ? cq->plain() : nullptr;
}

int ibv_resize_cq(ibv_cq* cq, int cqe) {
  const int refusal = refusal_to_change(cq->context);
  return refusal != 0 ? refusal : Cq::of(cq).resize(cqe);
}

int ibv_destroy_cq(ibv_cq* cq) {
  if (is_inherited(cq->context)) return 0;
  take_command_time(cq->context);
  if (Cq::of(cq).users.load() != 0) return EBUSY;
  delete &Cq::of(cq);
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
  take_command_time(pd->context);
  return softnic::create_qp_ex(pd->context, &extended);
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) { return &Qp::of(qp); }

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  if (is_inherited(qp->context)) return EINVAL;
  take_command_time(qp->context);
  return Qp::of(qp).modify(*attr, mask);
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  return Qp::of(qp).query(*attr, *init);
}

int ibv_destroy_qp(ibv_qp* qp) {
  if (is_inherited(qp->context)) return 0;
  take_command_time(qp->context);
  delete &Qp::of(qp);
  return 0;
}

// ECE: softnic devices have no options to negotiate.
int ibv_query_ece(ibv_qp*, ibv_ece* ece) {
  *ece = {};
  return 0;
}

int ibv_set_ece(ibv_qp*, ibv_ece* ece) { return ece->options == 0 ? 0 : EOPNOTSUPP; }

// Bytes are copied in ascending order, but softnic does not guarantee that.
int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t) { return 0; }

int ibv_fork_init() { return 0; }
ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }
int ibv_dontfork_range(void*, std::size_t) { return 0; }
int ibv_dofork_range(void*, std::size_t) { return 0; }

}  // extern "C"
