// SPDX-License-Identifier: Apache-2.0
#include "plugin/recovery/recover.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/send_comm.h"
#include "plugin/verbs/text.h"

namespace beeline {
namespace {

// Whether a completion with this status can come of a fault of the path: of its link, its devices,
// or a queue pair that the other end has fenced. Others come of a fault of the program, at either
// end, which would follow the data to another path.
bool is_path_failure(ibv_wc_status status) noexcept {
  switch (status) {
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_FATAL_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_GENERAL_ERR: return true;
    case IBV_WC_SUCCESS:
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_EEC_OP_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_MW_BIND_ERR:
    case IBV_WC_BAD_RESP_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_LOC_RDD_VIOL_ERR:
    case IBV_WC_REM_INV_RD_REQ_ERR:
    case IBV_WC_REM_ABORT_ERR:
    case IBV_WC_INV_EECN_ERR:
    case IBV_WC_INV_EEC_STATE_ERR:
    case IBV_WC_TM_ERR:
    case IBV_WC_TM_RNDV_INCOMPLETE: break;
  }
  return false;
}

}  // namespace

// --- What the transfer floor reports ---

void Recover::on_failed_request(Comm& comm, const DataPath& path, const ibv_wc& failed,
                                const char* doing) {
  if (!is_path_failure(failed.status) || !can_do_without(comm, path.index)) {
    return give_up_.on_failed_request(comm, path, failed, doing);
  }
  fail_path(comm, path.index,
            std::string("a ") + doing + " failed: " + verbs::wc_status_text(failed.status));
}

Errc Recover::on_refused(Comm& comm, const DataPath& path, int rc, const char* doing) {
  if (!can_do_without(comm, path.index)) return give_up_.on_refused(comm, path, rc, doing);
  fail_path(comm, path.index,
            std::string("cannot ") + doing + ": " +
                describe({Errc::kSystem, rc, "the device refused it"}));
  return Errc::kOk;
}

void Recover::on_unreadable_queue(Comm& comm, const DataPath& path) {
  give_up_.on_unreadable_queue(comm, path);
}

void Recover::on_protocol_error(Comm& comm, const char* what) {
  give_up_.on_protocol_error(comm, what);
}

Errc Recover::on_fault(Comm& comm, Errc code, const char* doing, const std::string& cause) {
  return give_up_.on_fault(comm, code, doing, cause);
}

Status Recover::on_alarm(Comm& comm) {
  advance(comm);
  return give_up_.on_alarm(comm);
}

Errc Recover::on_call_while_alarmed(Comm& comm, const char* call, bool* may) {
  advance(comm);
  return give_up_.on_call_while_alarmed(comm, call, may);
}

Status Recover::on_quiet(Comm& comm, StallWatch::Verdict verdict) {
  return give_up_.on_quiet(comm, verdict);
}

// --- Repairs ---

bool Recover::can_do_without(const Comm& comm, std::size_t path) const noexcept {
  if (!comm.link().exchanges_reports() || comm.link().has_ended()) return false;
  for (std::size_t other = 0; other < comm.paths().size(); ++other) {
    if (other != path && comm.is_up(other)) return true;
  }
  return false;
}

Recover::Repair& Recover::repair_of(const Comm& comm, std::size_t path) {
  if (repairs_ == nullptr) {
    repairs_ = std::make_unique<Repairs>();
    for (Repair& repair : *repairs_) repair.status.is_sender = comm.role() == Role::kSend;
  }
  return (*repairs_)[path];
}

void Recover::fail_path(Comm& comm, std::size_t path, const std::string& cause) {
  repair_of(comm, path).cause = cause;
  take_event(comm, path, PathEvent::Kind::kFailed, nullptr);
}

void Recover::take_event(Comm& comm, std::size_t path, PathEvent::Kind kind,
                         const wire::Fenced* message) {
  Repair& repair = repair_of(comm, path);
  PathEvent event = {.kind = kind, .generation = repair.status.generation};
  if (message != nullptr) {
    event.generation = message->generation;
    event.peer_has_report = message->has_peer_report;
  }
  const PathTransition made = on_event(repair.status, event);
  repair.status = made.next;
  made.actions.each(
      [&](PathAction action) { return take_action(comm, path, action, made, message); });
}

bool Recover::take_action(Comm& comm, std::size_t path, PathAction action,
                          const PathTransition& made, const wire::Fenced* message) {
  Repair& repair = repair_of(comm, path);
  switch (action) {
    case PathAction::kMoveToError: {
      repair.failed_ns = now_ns();
      comm.gate().raise_alarm();
      const Status fenced = comm.fence(path);
      if (!fenced) {
        (void)give_up_.on_fault(comm, Errc::kSystem, "go on without a path",
                                describe(fenced.error()));
      }
      return fenced.has_value();
    }
    case PathAction::kTakeReport: return take_report(comm, repair);
    case PathAction::kKeepPeerReport: repair.theirs = message->report; return true;
    case PathAction::kResolve: resume(comm, path, repair); return true;
    case PathAction::kSendFenced:
      comm.link().send_report({.path = static_cast<std::uint8_t>(path),
                               .generation = made.message_generation,
                               .has_peer_report = made.has_peer_report,
                               .report = repair.ours});
      return true;
    case PathAction::kProtocolError:
      give_up_.on_protocol_error(comm, "a message about a path that does not fit its state");
      return false;
    case PathAction::kDetach:        // a part of Comm::fence()
    case PathAction::kRetireQueues:  // they stay until the comm is closed
    // Nothing leads here as long as no path is made anew.
    case PathAction::kDestroyQueues:
    case PathAction::kMakeQueues:
    case PathAction::kConnectQueues:
    case PathAction::kProbe:
    case PathAction::kJoin:
    case PathAction::kAllowGrants:
    case PathAction::kSendOffer:
    case PathAction::kSendAnswer:
    case PathAction::kSendNotNow:
    case PathAction::kSendWell:
    case PathAction::kSendReady: return true;
  }
  return true;
}

bool Recover::take_report(Comm& comm, Repair& repair) {
  if (comm.role() == Role::kSend) {
    repair.ours = static_cast<SendComm&>(comm).report();
    return true;
  }
  const auto report = static_cast<RecvComm&>(comm).report();
  if (report) {
    repair.ours = *report;
  } else {
    give_up_.on_protocol_error(comm, "parts of more messages than a sender has under way");
  }
  return report.has_value();
}

void Recover::resume(Comm& comm, std::size_t path, const Repair& repair) {
  if (comm.role() == Role::kSend) {
    static_cast<SendComm&>(comm).resume(path, std::get<wire::ReceiverReport>(repair.theirs));
  } else {
    static_cast<RecvComm&>(comm).resume(path, std::get<wire::SenderReport>(repair.theirs));
  }
  std::size_t left = 0;
  for (std::size_t other = 0; other < comm.paths().size(); ++other)
    left += comm.is_up(other) ? 1 : 0;
  const double ms = static_cast<double>(now_ns() - repair.failed_ns) / kNsPerMs;
  BL_WARN("%s: path %zu of %zu is out of use: %s. The other paths (%zu) took over in %.1f ms",
          comm.name_for_log(path).c_str(), path + 1, comm.paths().size(), repair.cause.c_str(),
          left, ms);
}

void Recover::take_message(Comm& comm, const wire::Fenced& message) {
  const bool is_of_sender = std::holds_alternative<wire::SenderReport>(message.report);
  const bool is_from_other_role = is_of_sender == (comm.role() == Role::kReceive);
  if (message.path >= comm.paths().size() || !is_from_other_role) {
    return give_up_.on_protocol_error(comm, "a report about a path that does not exist");
  }
  if (comm.is_up(message.path)) {
    if (!can_do_without(comm, message.path)) {
      (void)give_up_.on_fault(comm, Errc::kPeerClosed, "go on",
                              "the other end has given up the last path");
      return;
    }
    repair_of(comm, message.path).cause = "it has failed at the other end";
  }
  take_event(comm, message.path, PathEvent::Kind::kFenced, &message);
}

void Recover::advance(Comm& comm) {
  while (const std::optional<wire::Fenced> message = comm.link().take_report()) {
    take_message(comm, *message);
  }
  if (repairs_ == nullptr) return;
  bool is_busy = false;
  for (std::size_t path = 0; path < comm.paths().size(); ++path) {
    const PathStatus& status = (*repairs_)[path].status;
    if (status.state == PathState::kFencing && comm.is_fenced(path)) {
      take_event(comm, path, PathEvent::Kind::kDrained, nullptr);
    }
    is_busy = is_busy || (status.state != PathState::kUp && status.state != PathState::kClear);
  }
  if (!is_busy && !comm.is_resuming()) comm.gate().lower_alarm();
}

}  // namespace beeline
