// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/cm/cm_steps.h"

#include "plugin/verbs/check.h"
#include "plugin/verbs/text.h"

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
  verbs::CmId::Step rtr = BL_TRY(id.step_to(IBV_QPS_RTR));
  rtr.attr.min_rnr_timer = options.min_rnr_timer;
  BL_TRY(modify(qp, rtr, "move the queue pair to RTR"));
  verbs::CmId::Step rts = BL_TRY(id.step_to(IBV_QPS_RTS));
  rts.attr.timeout = options.timeout;
  rts.attr.retry_cnt = options.retry_count;
  rts.attr.rnr_retry = options.rnr_retry;
  return modify(qp, rts, "move the queue pair to RTS");
}

Status post_first_receive(const verbs::Qp& qp, ibv_sge scratch) {
  ibv_recv_wr receive = {};
  receive.sg_list = &scratch;
  receive.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  return verbs::from_errno(ibv_post_recv(qp.get(), &receive, &refused),
                           "post the receive of the first message");
}

Status post_first_send(const verbs::Qp& qp, ibv_sge scratch) {
  ibv_send_wr send = {};
  send.sg_list = &scratch;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  return verbs::from_errno(ibv_post_send(qp.get(), &send, &refused), "send the first message");
}

Outcome<bool> is_first_message_done(ibv_cq* cq) {
  ibv_wc completion = {};
  const int found = ibv_poll_cq(cq, 1, &completion);
  if (found < 0) return fail(Errc::kSystem, "poll the completion queue for the first message");
  if (found == 0) return false;
  if (completion.status == IBV_WC_SUCCESS) return true;
  return fail(std::string("the first message over the new connection failed: ") +
              verbs::wc_status_text(completion.status));
}

}  // namespace beeline
