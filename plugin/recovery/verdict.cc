// SPDX-License-Identifier: Apache-2.0
//
// The sentences for each completion status, and the text before them.
#include "plugin/recovery/verdict.h"

#include <cstdio>
#include <string_view>
#include <utility>

#include "plugin/verbs/text.h"

namespace beeline {
namespace {

// "{here}" and "{there}" stand for the names of both ends.
struct StatusMeaning {
  Errc code;
  const char* cause;
  const char* advice = "";
};

// The end of a queue pair's TCP connection shows as the failure of the first request after it.
bool may_be_lost_tcp(const FailedRequest& request) noexcept {
  return request.transport == Transport::kIwarp &&
         (request.status == IBV_WC_WR_FLUSH_ERR || request.status == IBV_WC_LOC_QP_OP_ERR);
}

StatusMeaning meaning_of(const FailedRequest& request) noexcept {
  if (may_be_lost_tcp(request)) {
    return {Errc::kPeerClosed, "the TCP connection beneath the queue pair has ended",
            "an earlier line of the log of {here} or {there} may say why; if none does, look at "
            "the link and at what may cut TCP connections between both hosts"};
  }
  switch (request.status) {
    case IBV_WC_RETRY_EXC_ERR:
      return {Errc::kTimeout,
              "it cannot be told which end is at fault, or whether the network between them is",
              "look at both ports and the switch between them, at the GIDs and, with RoCE, at the "
              "routes and the lossless class"};
    case IBV_WC_BAD_RESP_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
      return {Errc::kPeerClosed,
              "it cannot be told which end is at fault, or whether the network between them is",
              "look at the kernel's logs (dmesg) of both hosts"};
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return {Errc::kProtocol, "{there} had no receive posted",
              "both ends must run the same Beeline"};
    case IBV_WC_REM_ACCESS_ERR:
      return {Errc::kPeerClosed,
              "the process at {there} had taken its buffer away (deregistered, or closing)",
              "the log of that host may say why"};
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
    case IBV_WC_REM_INV_RD_REQ_ERR:
      return {
          Errc::kPeerClosed,
          "the device at {there} refused the request, as devices do when a process is ending and "
          "has released its memory",
          "the log of that host may say why"};
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_MW_BIND_ERR:
    case IBV_WC_LOC_RDD_VIOL_ERR:
      return {
          Errc::kSystem,
          "the cause is at {here}: its device has no access to the buffer, which was deregistered "
          "while a request was in flight, or is smaller than the request says"};
    case IBV_WC_LOC_LEN_ERR:
      return {Errc::kSystem,
              "a message from {there} was longer than the receive that {here} had posted for it"};
    case IBV_WC_WR_FLUSH_ERR:
      return {Errc::kPeerClosed, "the queue pair went into error",
              "an earlier line of the log of {here} or {there} may say why; if none does, look at "
              "both ports, their MTU and their addresses"};
    case IBV_WC_LOC_QP_OP_ERR:  // rxe also uses it if its network interface accepts no packets
      return {
          Errc::kSystem, "the cause is at {here}: its device could not send",
          "check that its port is up and still has its address; the kernel's log (dmesg) of that "
          "host may say more"};
    case IBV_WC_FATAL_ERR:
    case IBV_WC_LOC_EEC_OP_ERR:
    case IBV_WC_INV_EECN_ERR:
    case IBV_WC_INV_EEC_STATE_ERR:
    case IBV_WC_GENERAL_ERR:
    case IBV_WC_TM_ERR:
    case IBV_WC_TM_RNDV_INCOMPLETE:
      return {Errc::kSystem, "the cause is at {here}: its device failed",
              "look at the kernel's log (dmesg) of that host"};
    case IBV_WC_SUCCESS: break;
  }
  return {Errc::kInternal, "no status that verbs define"};
}

void replace(std::string* text, std::string_view what, const std::string& by) {
  for (std::size_t at = text->find(what); at != std::string::npos;
       at = text->find(what, at + by.size())) {
    text->replace(at, what.size(), by);
  }
}

std::string fill(std::string text, const Ends& ends) {
  replace(&text, "{here}", ends.here);
  replace(&text, "{there}", ends.there);
  return text;
}

std::string what_failed(const Ends& ends, const FailedRequest& request) {
  char numbers[160];
  std::snprintf(numbers, sizeof numbers,
                "%s (status %d, vendor error 0x%x, queue pair 0x%x to 0x%x)",
                verbs::wc_status_text(request.status), request.status, request.vendor_error,
                request.qpn, request.peer_qpn);
  const std::string doing = request.doing;
  const bool is_receive = doing == "receive";
  return "a " + doing + (is_receive ? " at " : " from ") + ends.here +
         (is_receive ? " from " : " to ") + ends.there + " failed: " + numbers;
}

std::string remark_on(const Ends& ends, const PortReport& ours) {
  return ours.remark.empty() ? "" : "; at " + ends.here + ", " + ours.remark;
}

// A known fault of this end comes first, and is reported as the cause.
std::string trouble_first(const Ends& ends, const PortReport& ours, const std::string& rest) {
  if (ours.trouble.empty()) return rest;
  return "the cause is at " + ends.here + ": " + ours.trouble + "; " + rest;
}

}  // namespace

Verdict judge_request(const Ends& ends, const FailedRequest& request, const PortReport& ours) {
  const std::string failed = what_failed(ends, request);
  if (!ours.trouble.empty()) {
    return {Errc::kSystem, trouble_first(ends, ours, failed), {}};
  }
  const StatusMeaning meaning = meaning_of(request);
  return {meaning.code, failed + ": " + fill(meaning.cause, ends) + remark_on(ends, ours),
          fill(meaning.advice, ends)};
}

Verdict judge_stall(const Ends& ends, const std::string& stalled, const PortReport& ours) {
  if (!ours.trouble.empty()) {
    return {Errc::kSystem, trouble_first(ends, ours, stalled), {}};
  }
  return {Errc::kTimeout,
          stalled + ", and the device reports no error: packets are lost between " + ends.here +
              " and " + ends.there + remark_on(ends, ours),
          "look at both ports, the link and its counters, at the MTU of both ports and, with RoCE, "
          "at the lossless class; BEELINE_STALL_TIMEOUT sets how long to wait"};
}

Verdict judge_lost_peer(const Ends& ends, const std::string& cause,
                        const std::optional<FailedRequest>& before, const PortReport& ours) {
  std::string text = trouble_first(ends, ours, ends.there + ": " + cause);
  if (before) text += "; before, " + what_failed(ends, *before);
  return {Errc::kPeerClosed, std::move(text), {}};
}

}  // namespace beeline
