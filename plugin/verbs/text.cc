// SPDX-License-Identifier: Apache-2.0
//
// The values come from devices and libraries that may be newer than the headers of the build, so
// each function has a text for values that it does not know.
#include "plugin/verbs/text.h"

namespace beeline::verbs {

const char* wc_status_text(ibv_wc_status status) noexcept {
  switch (status) {
    case IBV_WC_SUCCESS: return "success";
    case IBV_WC_LOC_LEN_ERR: return "local length error";
    case IBV_WC_LOC_QP_OP_ERR: return "local queue pair operation error";
    case IBV_WC_LOC_EEC_OP_ERR: return "local EE context operation error";
    case IBV_WC_LOC_PROT_ERR: return "local protection error";
    case IBV_WC_WR_FLUSH_ERR: return "flushed, since the queue pair is in error";
    case IBV_WC_MW_BIND_ERR: return "memory window bind error";
    case IBV_WC_BAD_RESP_ERR: return "unexpected response";
    case IBV_WC_LOC_ACCESS_ERR: return "local access error";
    case IBV_WC_REM_INV_REQ_ERR: return "the target found the request invalid";
    case IBV_WC_REM_ACCESS_ERR: return "the target refused access to its memory";
    case IBV_WC_REM_OP_ERR: return "the target could not complete the operation";
    case IBV_WC_RETRY_EXC_ERR: return "no answer after all retries";
    case IBV_WC_RNR_RETRY_EXC_ERR: return "the target had no receive ready after all retries";
    case IBV_WC_LOC_RDD_VIOL_ERR: return "local RDD violation";
    case IBV_WC_REM_INV_RD_REQ_ERR: return "the target found the RD request invalid";
    case IBV_WC_REM_ABORT_ERR: return "the target aborted the operation";
    case IBV_WC_INV_EECN_ERR: return "invalid EE context number";
    case IBV_WC_INV_EEC_STATE_ERR: return "invalid EE context state";
    case IBV_WC_FATAL_ERR: return "fatal device error";
    case IBV_WC_RESP_TIMEOUT_ERR: return "response timeout";
    case IBV_WC_GENERAL_ERR: return "general error";
    case IBV_WC_TM_ERR: return "tag matching error";
    case IBV_WC_TM_RNDV_INCOMPLETE: return "tag matching rendezvous incomplete";
  }
  return "unknown completion status";
}

const char* event_text(ibv_event_type type) noexcept {
  switch (type) {
    case IBV_EVENT_CQ_ERR: return "completion queue overrun";
    case IBV_EVENT_QP_FATAL: return "queue pair fatal error";
    case IBV_EVENT_QP_REQ_ERR: return "invalid request on a queue pair";
    case IBV_EVENT_QP_ACCESS_ERR: return "access violation on a queue pair";
    case IBV_EVENT_COMM_EST: return "communication established";
    case IBV_EVENT_SQ_DRAINED: return "send queue drained";
    case IBV_EVENT_PATH_MIG: return "path migrated";
    case IBV_EVENT_PATH_MIG_ERR: return "path migration failed";
    case IBV_EVENT_DEVICE_FATAL: return "device fatal error";
    case IBV_EVENT_PORT_ACTIVE: return "port active";
    case IBV_EVENT_PORT_ERR: return "port error";
    case IBV_EVENT_LID_CHANGE: return "LID changed";
    case IBV_EVENT_PKEY_CHANGE: return "partition keys changed";
    case IBV_EVENT_SM_CHANGE: return "subnet manager changed";
    case IBV_EVENT_SRQ_ERR: return "shared receive queue error";
    case IBV_EVENT_SRQ_LIMIT_REACHED: return "shared receive queue limit reached";
    case IBV_EVENT_QP_LAST_WQE_REACHED: return "last receive of a queue pair reached";
    case IBV_EVENT_CLIENT_REREGISTER: return "subnet manager asks to register again";
    case IBV_EVENT_GID_CHANGE: return "GIDs changed";
    case IBV_EVENT_WQ_FATAL: return "work queue fatal error";
  }
  return "unknown event";
}

const char* port_state_text(ibv_port_state state) noexcept {
  switch (state) {
    case IBV_PORT_NOP: return "NOP";
    case IBV_PORT_DOWN: return "DOWN";
    case IBV_PORT_INIT: return "INIT";
    case IBV_PORT_ARMED: return "ARMED";
    case IBV_PORT_ACTIVE: return "ACTIVE";
    case IBV_PORT_ACTIVE_DEFER: return "ACTIVE_DEFER";
  }
  return "UNKNOWN";
}

int mtu_bytes(ibv_mtu mtu) noexcept {
  switch (mtu) {
    case IBV_MTU_256: return 256;
    case IBV_MTU_512: return 512;
    case IBV_MTU_1024: return 1024;
    case IBV_MTU_2048: return 2048;
    case IBV_MTU_4096: return 4096;
  }
  return 0;
}

}  // namespace beeline::verbs
