// SPDX-License-Identifier: Apache-2.0
#include "plugin/verbs/qp_steps.h"

#include <sys/random.h>

#include "common/base/clock.h"
#include "plugin/verbs/check.h"

namespace beeline::verbs {
namespace {

Status modify(const Qp& qp, ibv_qp_attr& attr, int mask, const char* what) {
  return from_errno(qp.api().modify_qp(qp.get(), &attr, mask), what);
}

ibv_ah_attr address_of(const PathParams& path) {
  ibv_ah_attr address = {};
  address.dlid = path.dlid;
  address.sl = path.sl;
  address.is_global = path.is_global ? 1 : 0;
  address.port_num = path.port;
  if (path.is_global) {
    address.grh = {.dgid = path.dgid,
                   .flow_label = path.flow_label,
                   .sgid_index = path.sgid_index,
                   .hop_limit = 255,
                   .traffic_class = path.traffic_class};
  }
  return address;
}

}  // namespace

std::uint32_t random_psn() noexcept {
  std::uint32_t bits = 0;
  if (::getrandom(&bits, sizeof bits, GRND_NONBLOCK) != sizeof bits) {
    // Early in the boot, the kernel has no random numbers yet. The clock differs enough.
    bits = static_cast<std::uint32_t>(now_ns() * 2654435761);
  }
  return bits & kPsnMask;
}

Status to_init(const Qp& qp, const InitParams& params) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.qp_access_flags = params.access;
  attr.pkey_index = params.pkey_index;
  attr.port_num = params.port;
  return modify(qp, attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                "move the queue pair to INIT");
}

Status to_rtr(const Qp& qp, const RtrParams& params) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = params.mtu;
  attr.rq_psn = params.rq_psn & kPsnMask;
  attr.dest_qp_num = params.dest_qpn;
  attr.ah_attr = address_of(params.path);
  attr.max_dest_rd_atomic = params.max_dest_rd_atomic;
  attr.min_rnr_timer = params.min_rnr_timer;
  return modify(qp, attr,
                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                "move the queue pair to RTR");
}

Status to_rts(const Qp& qp, const RtsParams& params) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = params.sq_psn & kPsnMask;
  attr.max_rd_atomic = params.max_rd_atomic;
  attr.timeout = params.timeout;
  attr.retry_cnt = params.retry_cnt;
  attr.rnr_retry = params.rnr_retry;
  return modify(qp, attr,
                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                "move the queue pair to RTS");
}

Result<ibv_ece> query_ece(const Qp& qp) {
  if (qp.api().query_ece == nullptr) return fail(Errc::kUnsupported, "query ECE");
  ibv_ece ece = {};
  BL_TRY(from_errno(qp.api().query_ece(qp.get(), &ece), "query ECE"));
  return ece;
}

Status set_ece(const Qp& qp, ibv_ece ece) {
  if (qp.api().set_ece == nullptr) return fail(Errc::kUnsupported, "set ECE");
  return from_errno(qp.api().set_ece(qp.get(), &ece), "set ECE");
}

}  // namespace beeline::verbs
