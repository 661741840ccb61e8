// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/qp_states.h"

#include <cerrno>

namespace softnic {
namespace {

struct Move {
  ibv_qp_state from;
  ibv_qp_state to;
  int required;
  int optional;
};

constexpr int kRtsOptional = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH |
                             IBV_QP_PATH_MIG_STATE | IBV_QP_MIN_RNR_TIMER;

constexpr Move kMoves[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     kRtsOptional},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, kRtsOptional},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, kRtsOptional},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0,
     kRtsOptional | IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PKEY_INDEX},
};

}  // namespace

int check_transition(ibv_qp_state from, ibv_qp_state to, int mask) noexcept {
  const int given = mask & ~IBV_QP_STATE;
  // These two are possible from every state (ERR not from RESET), and without other attributes.
  if (to == IBV_QPS_RESET) return given == 0 ? 0 : EINVAL;
  if (to == IBV_QPS_ERR) return given == 0 && from != IBV_QPS_RESET ? 0 : EINVAL;
  for (const Move& move : kMoves) {
    if (move.from != from || move.to != to) continue;
    const bool complete = (given & move.required) == move.required;
    const bool modest = (given & ~(move.required | move.optional)) == 0;
    return complete && modest ? 0 : EINVAL;
  }
  return EINVAL;
}

}  // namespace softnic
