// SPDX-License-Identifier: Apache-2.0
//
// The state transitions of an RC queue pair, with all their attributes, from one struct of settings
// whose defaults suit a healthy fabric.
#pragma once

#include <cstdint>
#include <optional>

#include "tests/support/verbs_handles.h"
#include "tests/support/verbs_memory.h"

namespace beeline::test {

// What the peer of a QP has to know. It may be sent to another process as bytes.
struct QpAddress {
  uint32_t qp_num = 0;
  uint32_t psn = 0;
  uint16_t lid = 0;
  ibv_gid gid{};
};

struct Wire {
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  ibv_mtu mtu = IBV_MTU_4096;
  uint8_t sgid_index = 3;  // usually RoCE v2 with IPv4
  uint8_t timeout = 17;    // 4.096 us * 2^17 = 0.54 s for each attempt
  uint8_t retry_cnt = 7;
  uint8_t rnr_retry = 7;       // endless
  uint8_t min_rnr_timer = 12;  // 0.64 ms
  uint8_t max_rd_atomic = 1;
  uint8_t max_dest_rd_atomic = 1;
  std::optional<uint32_t> sq_psn = {};  // default: one that is derived from the QP number
};

inline constexpr int kInitMask =
    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
inline constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
inline constexpr int kRtsMask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

QpAddress address_of(ibv_qp* qp, const Wire& wire = {});

// An attribute struct in which every field an RC QP can have is valid, for whatever mask.
ibv_qp_attr full_attr(ibv_qp* qp, const QpAddress& peer, const Wire& wire = {});

int modify_state(ibv_qp* qp, ibv_qp_state state);  // with IBV_QP_STATE alone
void to_init(ibv_qp* qp, const Wire& wire = {});
void to_rtr(ibv_qp* qp, const QpAddress& peer, const Wire& wire = {});
void to_rts(ibv_qp* qp, const Wire& wire = {});
// Moves it from RESET or ERR to RTS.
void connect(ibv_qp* qp, const QpAddress& peer, const Wire& wire = {});
void connect_both(ibv_qp* a, ibv_qp* b, const Wire& wire = {});

}  // namespace beeline::test
