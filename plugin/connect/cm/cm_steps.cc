// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/cm/cm_steps.h"

#include "common/check/assert.h"
#include "plugin/verbs/check.h"

namespace beeline {
namespace {

Status modify(const verbs::Qp& qp, verbs::CmId::Step step, const char* what) {
  return verbs::from_errno(qp.api().modify_qp(qp.get(), &step.attr, step.mask), what);
}

}  // namespace

Status cm_to_init(const verbs::Qp& qp, verbs::CmId& id) {
  verbs::CmId::Step step = BL_TRY(id.step_to(IBV_QPS_INIT));
  step.attr.qp_access_flags = kQpAccess;
  step.mask |= IBV_QP_ACCESS_FLAGS;
  return modify(qp, step, "move the queue pair to INIT");
}

Status cm_to_rts(const verbs::Qp& qp, verbs::CmId& id, const QpOptions& options) {
  BL_ASSERT(qp->context->device->transport_type != IBV_TRANSPORT_IWARP,
            "the kernel moves the queue pairs of iWARP");
  verbs::CmId::Step rtr = BL_TRY(id.step_to(IBV_QPS_RTR));
  rtr.attr.min_rnr_timer = options.min_rnr_timer;
  BL_TRY(modify(qp, rtr, "move the queue pair to RTR"));
  verbs::CmId::Step rts = BL_TRY(id.step_to(IBV_QPS_RTS));
  rts.attr.timeout = options.timeout;
  rts.attr.retry_cnt = options.retry_count;
  rts.attr.rnr_retry = options.rnr_retry;
  return modify(qp, rts, "move the queue pair to RTS");
}

}  // namespace beeline
