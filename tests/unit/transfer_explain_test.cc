// SPDX-License-Identifier: Apache-2.0
//
// What people are told of a failed completion.
#include "plugin/transfer/explain.h"

#include <string>

#include "tests/support/catch.h"

namespace beeline {
namespace {

Explanation roce(ibv_wc_status status) { return explain(status, Transport::kRoce); }

TEST_CASE("explain: every failure that verbs define is somebody's, and has a hint",
          "[unit][transfer]") {
  for (int status = IBV_WC_SUCCESS + 1; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status) {
    CAPTURE(status);
    const Explanation told = roce(static_cast<ibv_wc_status>(status));
    CHECK(told.code != Errc::kInternal);
    CHECK_FALSE(std::string(told.hint).empty());
  }
}

TEST_CASE("explain: it is told apart whether the wire, the peer or this end failed",
          "[unit][transfer]") {
  CHECK(roce(IBV_WC_RETRY_EXC_ERR).code == Errc::kTimeout);
  CHECK(roce(IBV_WC_RNR_RETRY_EXC_ERR).code == Errc::kProtocol);
  for (const auto status : {IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR, IBV_WC_WR_FLUSH_ERR}) {
    CHECK(roce(status).code == Errc::kPeerClosed);
  }
  for (const auto status : {IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_LEN_ERR, IBV_WC_FATAL_ERR}) {
    CHECK(roce(status).code == Errc::kSystem);
  }
}

TEST_CASE("explain: on iWARP a lost TCP connection is the peer's or the wire's",
          "[unit][transfer]") {
  for (const auto status : {IBV_WC_WR_FLUSH_ERR, IBV_WC_LOC_QP_OP_ERR}) {
    const Explanation told = explain(status, Transport::kIwarp);
    CHECK(told.code == Errc::kPeerClosed);
    CHECK(std::string(told.hint).find("TCP connection") != std::string::npos);
  }
  CHECK(roce(IBV_WC_LOC_QP_OP_ERR).code == Errc::kSystem);
  CHECK(explain(IBV_WC_LOC_PROT_ERR, Transport::kIwarp).code == Errc::kSystem);
}

TEST_CASE("explain: a status of tomorrow is called what it is", "[unit][transfer]") {
  CHECK(roce(static_cast<ibv_wc_status>(31)).code == Errc::kInternal);
}

}  // namespace
}  // namespace beeline
