// SPDX-License-Identifier: Apache-2.0
//
// One entry for each completion status.
#include "plugin/transfer/explain.h"

namespace beeline {
namespace {

// How a queue pair's TCP connection ends shows in whichever request met it first.
bool may_be_lost_tcp(ibv_wc_status status) noexcept {
  return status == IBV_WC_WR_FLUSH_ERR || status == IBV_WC_LOC_QP_OP_ERR;
}

}  // namespace

Explanation explain(ibv_wc_status status, Transport transport) noexcept {
  if (transport == Transport::kIwarp && may_be_lost_tcp(status)) {
    return {Errc::kPeerClosed,
            "the TCP connection beneath the queue pair has ended: an earlier line of this log, or "
            "of the peer's, may say why; if none does, look at the link and at what may cut TCP "
            "connections between both hosts"};
  }
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return {Errc::kTimeout,
              "the peer's port stopped answering: look at the link and the switch between both, at "
              "the GIDs and, with RoCE, at the routes and the lossless class"};
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return {Errc::kProtocol,
              "the peer had no receive posted: both ends must run the same Beeline"};
    case IBV_WC_REM_ACCESS_ERR:
      return {Errc::kPeerClosed,
              "the peer took its buffer away (deregistered, or closing) while we wrote to it"};
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
    case IBV_WC_REM_INV_RD_REQ_ERR:
      return {Errc::kPeerClosed, "the peer's device refused the request: see the log of that host"};
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_MW_BIND_ERR:
    case IBV_WC_LOC_RDD_VIOL_ERR:
      return {
          Errc::kSystem,
          "our device may not touch the buffer: it was deregistered with a request under way, or "
          "is smaller than the request says"};
    case IBV_WC_LOC_LEN_ERR:
      return {Errc::kSystem, "a message was longer than the receive posted for it"};
    case IBV_WC_WR_FLUSH_ERR:
      return {Errc::kPeerClosed,
              "the queue pair went into error: an earlier line of this log, or of the peer's, says "
              "why; if none does, look at our port, its MTU and its addresses"};
    case IBV_WC_LOC_QP_OP_ERR:  // also rxe's way to say that its network interface takes nothing
      return {
          Errc::kSystem,
          "our device could not send: is its port up, and its address still there? The kernel's "
          "log (dmesg) of this host may say more"};
    case IBV_WC_FATAL_ERR:
    case IBV_WC_LOC_EEC_OP_ERR:
    case IBV_WC_BAD_RESP_ERR:
    case IBV_WC_INV_EECN_ERR:
    case IBV_WC_INV_EEC_STATE_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_GENERAL_ERR:
    case IBV_WC_TM_ERR:
    case IBV_WC_TM_RNDV_INCOMPLETE:
      return {Errc::kSystem, "our device failed: look at the kernel's log (dmesg) of this host"};
    case IBV_WC_SUCCESS: break;
  }
  return {Errc::kInternal, "no status that verbs define"};
}

}  // namespace beeline
