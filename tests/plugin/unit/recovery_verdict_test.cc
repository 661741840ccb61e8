// SPDX-License-Identifier: Apache-2.0
//
// The log texts about a connection that failed, on both hosts.
#include "plugin/recovery/verdict.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace beeline {
namespace {

const Ends kEnds = {.here = "h0:nic0:1", .there = "h1:nic1:1"};
const PortReport kNothingKnown;
const PortReport kDown = {.trouble = "its port is DOWN", .remark = {}};

FailedRequest failed(ibv_wc_status status, Transport transport = Transport::kRoce) {
  return {.doing = "send", .status = status, .qpn = 0x11, .peer_qpn = 0x12, .transport = transport};
}
Verdict roce(ibv_wc_status status) { return judge_request(kEnds, failed(status), kNothingKnown); }

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
bool blames(const Verdict& verdict, const std::string& end) {
  return has(verdict.text(), "the cause is at " + end);
}

std::vector<ibv_wc_status> failures() {
  std::vector<ibv_wc_status> all;
  for (int status = IBV_WC_SUCCESS + 1; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status) {
    all.push_back(static_cast<ibv_wc_status>(status));
  }
  return all;
}

TEST_CASE("verdict: every failure that verbs define has a code, and names both ends",
          "[unit][recovery]") {
  for (const ibv_wc_status status : failures()) {
    const Verdict told = roce(status);
    CAPTURE(status, told.text());
    CHECK(told.code != Errc::kInternal);
    CHECK(told.cause.starts_with("a send from h0:nic0:1 to h1:nic1:1 failed: "));
    CHECK(has(told.cause, "(status " + std::to_string(status) + ","));
    CHECK_FALSE(has(told.text(), "{"));
  }
}

// The sentence is also printed on the other host, where "the peer" and "our" would mean other
// hosts.
TEST_CASE("verdict: no sentence depends on the host that prints it", "[unit][recovery]") {
  for (const ibv_wc_status status : failures()) {
    for (const Transport transport : {Transport::kRoce, Transport::kIwarp}) {
      for (const PortReport& report : {kNothingKnown, kDown}) {
        const Verdict told = judge_request(kEnds, failed(status, transport), report);
        CAPTURE(told.text());
        for (const char* const word : {"peer", " our ", " here", "remote", " us ", " we "}) {
          CHECK_FALSE(has(told.text(), word));
        }
      }
    }
  }
}

TEST_CASE("verdict: no status alone blames the other end", "[unit][recovery]") {
  for (const ibv_wc_status status : failures()) {
    CAPTURE(status);
    CHECK_FALSE(blames(roce(status), kEnds.there));
  }
  CHECK_FALSE(blames(judge_stall(kEnds, "nothing has completed", kNothingKnown), kEnds.there));
  CHECK_FALSE(blames(judge_stall(kEnds, "nothing has completed", kNothingKnown), kEnds.here));
}

TEST_CASE("verdict: unanswered retries are blamed on neither end", "[unit][recovery]") {
  const Verdict told = roce(IBV_WC_RETRY_EXC_ERR);
  CHECK_FALSE(blames(told, kEnds.here));
  CHECK(has(told.cause, "it cannot be told which end is at fault"));
}

TEST_CASE("verdict: trouble of the local port comes first, whatever failed", "[unit][recovery]") {
  for (const ibv_wc_status status : failures()) {
    const Verdict told = judge_request(kEnds, failed(status), kDown);
    CAPTURE(told.text());
    CHECK(told.code == Errc::kSystem);
    CHECK(told.cause.starts_with("the cause is at h0:nic0:1: its port is DOWN; a send from "));
    CHECK_FALSE(has(told.text(), "cannot be told"));
  }
  const Verdict stalled = judge_stall(kEnds, "nothing has completed for 1.0 s", kDown);
  CHECK(stalled.text() ==
        "the cause is at h0:nic0:1: its port is DOWN; nothing has completed for 1.0 s");
  const Verdict lost = judge_lost_peer(kEnds, "it says: cannot move data", {}, kDown);
  CHECK(lost.text() ==
        "the cause is at h0:nic0:1: its port is DOWN; h1:nic1:1: it says: cannot move data");
}

TEST_CASE("verdict: a fact that may be related comes last", "[unit][recovery]") {
  const PortReport report = {.trouble = {}, .remark = "the GID table changed 0.2 s ago"};
  const Verdict told = judge_request(kEnds, failed(IBV_WC_RETRY_EXC_ERR), report);
  CHECK(told.cause.ends_with("; at h0:nic0:1, the GID table changed 0.2 s ago"));
  CHECK_FALSE(blames(told, kEnds.here));
}

TEST_CASE("verdict: the end of the peer explains an earlier failure", "[unit][recovery]") {
  const Verdict told = judge_lost_peer(kEnds, "its process ended without goodbye",
                                       failed(IBV_WC_REM_OP_ERR), kNothingKnown);
  CHECK(told.code == Errc::kPeerClosed);
  CHECK(told.cause.starts_with("h1:nic1:1: its process ended without goodbye; before, a send"));
  CHECK(told.cause.ends_with("(status 11, vendor error 0x0, queue pair 0x11 to 0x12)"));
}

TEST_CASE("verdict: the code distinguishes failures of the network, the peer and this end",
          "[unit][recovery]") {
  CHECK(roce(IBV_WC_RETRY_EXC_ERR).code == Errc::kTimeout);
  CHECK(roce(IBV_WC_RNR_RETRY_EXC_ERR).code == Errc::kProtocol);
  for (const auto status : {IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR, IBV_WC_WR_FLUSH_ERR}) {
    CHECK(roce(status).code == Errc::kPeerClosed);
  }
  for (const auto status : {IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_LEN_ERR, IBV_WC_FATAL_ERR}) {
    CHECK(roce(status).code == Errc::kSystem);
  }
  for (const auto status : {IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_FATAL_ERR}) {
    CHECK(blames(roce(status), kEnds.here));
  }
}

TEST_CASE("verdict: on iWARP a lost TCP connection is the peer's or the wire's",
          "[unit][recovery]") {
  for (const auto status : {IBV_WC_WR_FLUSH_ERR, IBV_WC_LOC_QP_OP_ERR}) {
    const Verdict told = judge_request(kEnds, failed(status, Transport::kIwarp), kNothingKnown);
    CHECK(told.code == Errc::kPeerClosed);
    CHECK(has(told.cause, "TCP connection"));
    CHECK_FALSE(blames(told, kEnds.here));
  }
  CHECK(roce(IBV_WC_LOC_QP_OP_ERR).code == Errc::kSystem);
  const FailedRequest protection = failed(IBV_WC_LOC_PROT_ERR, Transport::kIwarp);
  CHECK(judge_request(kEnds, protection, kNothingKnown).code == Errc::kSystem);
}

TEST_CASE("verdict: an unknown status is an internal error", "[unit][recovery]") {
  CHECK(roce(static_cast<ibv_wc_status>(31)).code == Errc::kInternal);
}

}  // namespace
}  // namespace beeline
