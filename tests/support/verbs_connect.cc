// SPDX-License-Identifier: Apache-2.0
//
// Supports RoCE and InfiniBand ports.
#include "tests/support/verbs_connect.h"

#include "tests/support/must.h"
#include "tests/support/verbs_work.h"

namespace beeline::test {
namespace {

// Differs from QP to QP, so that packets of another connection are not accepted.
uint32_t psn_of(uint32_t qp_num) { return (qp_num * 0x9E3779B1u) >> 8; }

void modify(ibv_qp* qp, ibv_qp_attr attr, ibv_qp_state state, int mask) {
  attr.qp_state = state;
  BL_MUST_OK(ibv_modify_qp(qp, &attr, mask));
}

}  // namespace

QpAddress address_of(ibv_qp* qp, const Wire& wire) {
  QpAddress address;
  address.qp_num = qp->qp_num;
  address.psn = wire.sq_psn.value_or(psn_of(qp->qp_num));
  ibv_port_attr port{};
  BL_MUST_OK(ibv_query_port(qp->context, 1, &port));
  address.lid = port.lid;
  const int index = port.link_layer == IBV_LINK_LAYER_INFINIBAND ? 0 : wire.sgid_index;
  BL_MUST_OK(ibv_query_gid(qp->context, 1, index, &address.gid));
  return address;
}

ibv_qp_attr full_attr(ibv_qp* qp, const QpAddress& peer, const Wire& wire) {
  ibv_port_attr port{};
  BL_MUST_OK(ibv_query_port(qp->context, 1, &port));
  ibv_qp_attr attr{};
  attr.port_num = 1;
  attr.qp_access_flags = static_cast<unsigned>(wire.access);
  attr.path_mtu = wire.mtu;
  attr.dest_qp_num = peer.qp_num;
  attr.rq_psn = peer.psn;
  attr.sq_psn = address_of(qp, wire).psn;
  attr.max_dest_rd_atomic = wire.max_dest_rd_atomic;
  attr.max_rd_atomic = wire.max_rd_atomic;
  attr.min_rnr_timer = wire.min_rnr_timer;
  attr.timeout = wire.timeout;
  attr.retry_cnt = wire.retry_cnt;
  attr.rnr_retry = wire.rnr_retry;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.dlid = peer.lid;
  if (port.link_layer != IBV_LINK_LAYER_INFINIBAND) {
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = peer.gid;
    attr.ah_attr.grh.sgid_index = wire.sgid_index;
    attr.ah_attr.grh.hop_limit = 64;
  }
  attr.cur_qp_state = qp->state;
  attr.path_mig_state = IBV_MIG_MIGRATED;
  return attr;
}

int modify_state(ibv_qp* qp, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

void to_init(ibv_qp* qp, const Wire& wire) {
  modify(qp, full_attr(qp, {}, wire), IBV_QPS_INIT, kInitMask);
}

void to_rtr(ibv_qp* qp, const QpAddress& peer, const Wire& wire) {
  modify(qp, full_attr(qp, peer, wire), IBV_QPS_RTR, kRtrMask);
}

void to_rts(ibv_qp* qp, const Wire& wire) {
  modify(qp, full_attr(qp, {}, wire), IBV_QPS_RTS, kRtsMask);
}

void connect(ibv_qp* qp, const QpAddress& peer, const Wire& wire) {
  if (state_of(qp) != IBV_QPS_RESET) BL_MUST_OK(modify_state(qp, IBV_QPS_RESET));
  to_init(qp, wire);
  to_rtr(qp, peer, wire);
  to_rts(qp, wire);
}

void connect_both(ibv_qp* a, ibv_qp* b, const Wire& wire) {
  const QpAddress address_a = address_of(a, wire);
  const QpAddress address_b = address_of(b, wire);
  connect(a, address_b, wire);
  connect(b, address_a, wire);
}

}  // namespace beeline::test
