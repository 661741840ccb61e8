// SPDX-License-Identifier: Apache-2.0
// The table includes statuses that no RC queue pair reports (datagrams, memory windows), so that a
// test can see how a program handles them.
#include "softnic/spec/wc_status.h"

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <cctype>
#include <vector>

#include "softnic/spec/names.h"

namespace softnic {
namespace {

struct StatusName {
  const char* name;
  ibv_wc_status status;
};

constexpr StatusName kStatusNames[] = {
    {"loc_len_err", IBV_WC_LOC_LEN_ERR},
    {"loc_qp_op_err", IBV_WC_LOC_QP_OP_ERR},
    {"loc_eec_op_err", IBV_WC_LOC_EEC_OP_ERR},
    {"loc_prot_err", IBV_WC_LOC_PROT_ERR},
    {"wr_flush_err", IBV_WC_WR_FLUSH_ERR},
    {"mw_bind_err", IBV_WC_MW_BIND_ERR},
    {"bad_resp_err", IBV_WC_BAD_RESP_ERR},
    {"loc_access_err", IBV_WC_LOC_ACCESS_ERR},
    {"rem_inv_req_err", IBV_WC_REM_INV_REQ_ERR},
    {"rem_access_err", IBV_WC_REM_ACCESS_ERR},
    {"rem_op_err", IBV_WC_REM_OP_ERR},
    {"retry_exc_err", IBV_WC_RETRY_EXC_ERR},
    {"rnr_retry_exc_err", IBV_WC_RNR_RETRY_EXC_ERR},
    {"loc_rdd_viol_err", IBV_WC_LOC_RDD_VIOL_ERR},
    {"rem_inv_rd_req_err", IBV_WC_REM_INV_RD_REQ_ERR},
    {"rem_abort_err", IBV_WC_REM_ABORT_ERR},
    {"inv_eecn_err", IBV_WC_INV_EECN_ERR},
    {"inv_eec_state_err", IBV_WC_INV_EEC_STATE_ERR},
    {"fatal_err", IBV_WC_FATAL_ERR},
    {"resp_timeout_err", IBV_WC_RESP_TIMEOUT_ERR},
    {"general_err", IBV_WC_GENERAL_ERR},
};

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

beeline::Outcome<std::uint32_t> parse_wc_status(const std::string& text) {
  std::string name = lower_case(text);
  if (name.starts_with("ibv_wc_")) name.erase(0, 7);
  std::vector<std::string> known;
  for (const StatusName& entry : kStatusNames) {
    if (name == entry.name) return static_cast<std::uint32_t>(entry.status);
    known.emplace_back(entry.name);
  }
  const std::string meant = nearest_name(name, known);
  return beeline::fail(fmt::format(
      "\"{}\" is not an error status; {}", text,
      meant.empty() ? "choose " + list_text(known) : fmt::format("did you mean {}?", meant)));
}

std::string wc_status_name(std::uint32_t status) {
  for (const StatusName& entry : kStatusNames)
    if (status == entry.status) return entry.name;
  return fmt::format("status {}", status);
}

}  // namespace softnic
