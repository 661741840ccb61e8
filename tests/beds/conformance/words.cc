// SPDX-License-Identifier: Apache-2.0
#include "tests/beds/conformance/words.h"

#include <cerrno>
#include <cstring>

namespace conformance {
namespace {

std::string errno_word(int error) {
  const char* name = ::strerrorname_np(error);
  return name != nullptr ? name : std::to_string(error);
}

struct Named {
  int value;
  const char* name;
};

template <std::size_t kCount>
std::string look_up(const Named (&names)[kCount], int value) {
  for (const Named& named : names) {
    if (named.value == value) return named.name;
  }
  return std::to_string(value);
}

constexpr Named kStatuses[] = {
    {IBV_WC_SUCCESS, "SUCCESS"},
    {IBV_WC_LOC_LEN_ERR, "LOC_LEN_ERR"},
    {IBV_WC_LOC_QP_OP_ERR, "LOC_QP_OP_ERR"},
    {IBV_WC_LOC_PROT_ERR, "LOC_PROT_ERR"},
    {IBV_WC_WR_FLUSH_ERR, "WR_FLUSH_ERR"},
    {IBV_WC_BAD_RESP_ERR, "BAD_RESP_ERR"},
    {IBV_WC_LOC_ACCESS_ERR, "LOC_ACCESS_ERR"},
    {IBV_WC_REM_INV_REQ_ERR, "REM_INV_REQ_ERR"},
    {IBV_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR"},
    {IBV_WC_REM_OP_ERR, "REM_OP_ERR"},
    {IBV_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR"},
    {IBV_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC_ERR"},
    {IBV_WC_REM_ABORT_ERR, "REM_ABORT_ERR"},
    {IBV_WC_FATAL_ERR, "FATAL_ERR"},
    {IBV_WC_RESP_TIMEOUT_ERR, "RESP_TIMEOUT_ERR"},
    {IBV_WC_GENERAL_ERR, "GENERAL_ERR"},
};

constexpr Named kOpcodes[] = {
    {IBV_WC_SEND, "SEND"},
    {IBV_WC_RDMA_WRITE, "RDMA_WRITE"},
    {IBV_WC_RDMA_READ, "RDMA_READ"},
    {IBV_WC_COMP_SWAP, "COMP_SWAP"},
    {IBV_WC_FETCH_ADD, "FETCH_ADD"},
    {IBV_WC_RECV, "RECV"},
    {IBV_WC_RECV_RDMA_WITH_IMM, "RECV_RDMA_WITH_IMM"},
};

constexpr Named kStates[] = {
    {IBV_QPS_RESET, "RESET"}, {IBV_QPS_INIT, "INIT"}, {IBV_QPS_RTR, "RTR"}, {IBV_QPS_RTS, "RTS"},
    {IBV_QPS_SQD, "SQD"},     {IBV_QPS_SQE, "SQE"},   {IBV_QPS_ERR, "ERR"},
};

constexpr Named kEvents[] = {
    {IBV_EVENT_CQ_ERR, "CQ_ERR"},
    {IBV_EVENT_QP_FATAL, "QP_FATAL"},
    {IBV_EVENT_QP_REQ_ERR, "QP_REQ_ERR"},
    {IBV_EVENT_QP_ACCESS_ERR, "QP_ACCESS_ERR"},
    {IBV_EVENT_COMM_EST, "COMM_EST"},
    {IBV_EVENT_SQ_DRAINED, "SQ_DRAINED"},
    {IBV_EVENT_SRQ_LIMIT_REACHED, "SRQ_LIMIT_REACHED"},
    {IBV_EVENT_QP_LAST_WQE_REACHED, "QP_LAST_WQE_REACHED"},
};

}  // namespace

std::string word(ibv_wc_status status) { return look_up(kStatuses, status); }
std::string word(ibv_wc_opcode opcode) { return look_up(kOpcodes, opcode); }
std::string word(ibv_qp_state state) { return look_up(kStates, state); }
std::string word(ibv_event_type type) { return look_up(kEvents, type); }

std::string verdict(int answer) {
  if (answer == 0) return "accepted";
  return "refused " + (answer < 0 ? "-" + errno_word(-answer) : errno_word(answer));
}

std::string verdict_of_errno(bool made) {
  return made ? "accepted" : "refused " + errno_word(errno);
}

std::string all_of(const char* yes, std::initializer_list<Check> checks) {
  std::string wrong;
  for (const Check& check : checks) {
    if (check.holds) continue;
    if (!wrong.empty()) wrong += ", ";
    wrong += check.otherwise;
  }
  return wrong.empty() ? yes : wrong;
}

}  // namespace conformance
