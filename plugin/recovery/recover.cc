// SPDX-License-Identifier: Apache-2.0
#include "plugin/recovery/recover.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/check/assert.h"
#include "plugin/device/port_report.h"
#include "plugin/recovery/times.h"
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

// Generations in a row that failed within kBriefLifeNs.
constexpr std::uint32_t kMostBriefLives = 3;

[[maybe_unused]] bool carries_data(PathState state) noexcept {
  return state == PathState::kUp || state == PathState::kAnswered;
}

// Of FENCED or OFFER_PATH.
Repair::Report report_in(const PathMessage& message) {
  if (const auto* const offer = std::get_if<wire::OfferPath>(&message)) return offer->report;
  return std::get<wire::Fenced>(message).report;
}

}  // namespace

// --- What the transfer floor reports ---

void Recover::on_failed_request(Comm& comm, const DataPath& path, const ibv_wc& failed,
                                const char* doing) {
  // Requests that are flushed after a fault of a program have the same cause.
  const bool is_explained = is_path_failure(failed.status) && !give_up_.suspects(path.index);
  if (!is_explained || !can_recover(comm, path.index) || is_hopeless(comm, path.index, failed)) {
    return give_up_.on_failed_request(comm, path, failed, doing);
  }
  fail_path(comm, path.index,
            std::string("a ") + doing + " failed: " + verbs::wc_status_text(failed.status));
}

Errc Recover::on_refused(Comm& comm, const DataPath& path, int rc, const char* doing) {
  if (!can_recover(comm, path.index)) return give_up_.on_refused(comm, path, rc, doing);
  fail_path(comm, path.index,
            std::string("cannot ") + doing + ": " +
                describe({Errc::kSystem, rc, "the device refused it"}));
  return Errc::kOk;
}

void Recover::on_unreadable_queue(Comm& comm, const DataPath& path) {
  if (!path.is_up) return;  // nothing of it counts any more
  if (!can_recover(comm, path.index)) return give_up_.on_unreadable_queue(comm, path);
  fail_path(comm, path.index, "its completion queue cannot be read");
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

void Recover::on_waiting(Comm& comm, std::int64_t now_ns) {
  if (!comm.link().exchanges_reports() || comm.link().has_ended()) return;
  if (silence_ == nullptr) silence_ = std::make_unique<SilenceWatch>();
  if (!silence_->is_due(now_ns)) return;
  const SilenceWatch::Findings found = silence_->look(
      comm.paths().size(), now_ns, [&](std::size_t path) { return comm.signs_of(path); });
  if (found.must_ask) (void)comm.probe_paths();  // what the device refuses is reported by itself
  for (std::size_t path = 0; path < comm.paths().size(); ++path) {
    if ((found.silent >> path & 1) == 0 || !comm.is_up(path) || !can_recover(comm, path)) continue;
    fail_path(comm, path,
              "nothing completes on it and its device reports no error, while another path works");
    repair_of(comm, path).was_silent = true;
  }
}

Status Recover::on_quiet(Comm& comm, StallWatch::Verdict verdict) {
  if (!comm.has_usable_path()) return {};  // nothing can move until a path is made anew
  if (verdict != StallWatch::Verdict::kStalled || !comm.link().exchanges_reports()) {
    return give_up_.on_quiet(comm, verdict);
  }
  // Their devices should have reported an error by now. Soft RoCE can retry for ever.
  for (std::size_t path = 0; path < comm.paths().size(); ++path) {
    if (!comm.is_up(path) || !comm.waits_for(path)) continue;
    if (!can_recover(comm, path)) return give_up_.on_quiet(comm, verdict);
    fail_path(
        comm, path,
        "nothing has completed within BEELINE_STALL_TIMEOUT, and its device reports no error");
  }
  return {};
}

// A new queue pair would fail like the last ones: this end's device refuses what it is told to do.
bool Recover::is_hopeless(const Comm& comm, std::size_t path, const ibv_wc& failed) {
  Repair& repair = repair_of(comm, path);
  const bool is_brief = failed.status == IBV_WC_LOC_QP_OP_ERR && repair.up_ns != 0 &&
                        now_ns() - repair.up_ns < times::kBriefLifeNs;
  repair.brief_lives = is_brief ? repair.brief_lives + 1 : 0;
  return repair.brief_lives >= kMostBriefLives && !has_other_path(comm, path);
}

// --- The table, and what it says ---

bool Recover::can_recover(const Comm& comm, std::size_t path) noexcept {
  if (!comm.link().exchanges_reports() || comm.link().has_ended()) return false;
  return !comm.paths()[path].queues.cm || has_other_path(comm, path);
}

bool Recover::has_other_path(const Comm& comm, std::size_t path) noexcept {
  for (std::size_t other = 0; other < comm.paths().size(); ++other) {
    if (other != path && comm.is_up(other)) return true;
  }
  return false;
}

Repair& Recover::repair_of(const Comm& comm, std::size_t path) {
  BL_ASSERT(path < comm.paths().size(), "the path is one of the comm");
  if (repairs_ == nullptr) {
    repairs_ = std::make_unique<Repairs>();
    for (Repair& repair : *repairs_) repair.status.is_sender = comm.role() == Role::kSend;
  }
  return (*repairs_)[path];
}

void Recover::fail_path(Comm& comm, std::size_t path, const std::string& cause) {
  repair_of(comm, path).cause = cause;
  take_local(comm, path, PathEvent::Kind::kFailed);
}

bool Recover::take_event(Comm& comm, std::size_t path, const PathEvent& event,
                         const PathMessage* message) {
  BL_ASSERT(event.is_message() == (message != nullptr), "an event of the peer has its message");
  Repair& repair = repair_of(comm, path);
  const PathStatus before = repair.status;
  const PathTransition made = on_event(before, event);
  repair.status = made.next;
  bool has_joined = true;
  made.actions.each([&](PathAction action) {
    if (action == PathAction::kJoin) {
      has_joined = join(comm, path, repair);
      return has_joined && repair.status == made.next;
    }
    return take_action(comm, path, action, made, message);
  });
  if (!has_joined) {  // it is always the first action
    repair.status = before;
  } else if (repair.status.state != before.state) {
    on_state(comm, path, repair);
  }
  BL_ASSERT(comm.is_up(path) == carries_data(repair.status.state) || give_up_.has_ended(),
            "after each event the comm uses the path if, and only if, its state says so");
  return has_joined;
}

bool Recover::take_action(Comm& comm, std::size_t path, PathAction action,
                          const PathTransition& made, const PathMessage* message) {
  Repair& repair = repair_of(comm, path);
  const auto number = static_cast<std::uint8_t>(path);
  const auto note = [&](wire::PathNews news) {
    comm.link().send_about_path(
        wire::PathNote{.path = number, .generation = made.message_generation, .news = news});
  };
  switch (action) {
    case PathAction::kDetach:  // otherwise a part of the fence
      if (!made.actions.has(PathAction::kMoveToError)) comm.leave(path);
      return true;
    case PathAction::kMoveToError: return fence(comm, path);
    case PathAction::kTakeReport: return take_report(comm, path);
    case PathAction::kKeepPeerReport: repair.theirs = report_in(*message); return true;
    case PathAction::kResolve: resume(comm, path, repair); return true;
    case PathAction::kRetireQueues: return true;  // they stay until others take their place
    case PathAction::kDestroyQueues: drop_made(comm, path); return true;
    case PathAction::kMakeQueues: order_queues(comm, path, message); return true;
    case PathAction::kConnectQueues:
      repair.line_keys = std::get<wire::AnswerPath>(*message).line_keys;
      comm.link().order({.path = number,
                         .generation = repair.status.generation,
                         .what = ConnectPath{std::get<wire::AnswerPath>(*message).answer}});
      return true;
    case PathAction::kProbe:              // a part of the order
    case PathAction::kJoin: return true;  // see take_event()
    case PathAction::kAllowGrants: comm.allow_grants(path); return true;
    case PathAction::kSendFenced:
      comm.link().send_about_path(wire::Fenced{.path = number,
                                               .generation = made.message_generation,
                                               .has_peer_report = made.has_peer_report,
                                               .report = repair.ours});
      return true;
    case PathAction::kSendOffer:
      comm.link().send_about_path(
          wire::OfferPath{.path = number,
                          .generation = made.message_generation,
                          .report = std::get<wire::SenderReport>(repair.ours),
                          .offer = repair.offer,
                          .ring_key = repair.ring_key});
      return true;
    case PathAction::kSendAnswer:
      comm.link().send_about_path(
          wire::AnswerPath{.path = number,
                           .generation = made.message_generation,
                           .answer = repair.answer,
                           .line_keys = static_cast<RecvComm&>(comm).line_keys(path)});
      return true;
    case PathAction::kSendNotNow: note(wire::PathNews::kNotNow); return true;
    case PathAction::kSendWell: note(wire::PathNews::kWell); return true;
    case PathAction::kSendReady: note(wire::PathNews::kReady); return true;
    case PathAction::kSendCannotFence: note(wire::PathNews::kCannotFence); return true;
    case PathAction::kProtocolError:
      give_up_.on_protocol_error(comm, "a message about a path that does not fit its state");
      return false;
  }
  return true;
}

bool Recover::fence(Comm& comm, std::size_t path) {
  Repair& repair = repair_of(comm, path);
  repair.failed_ns = now_ns();
  if (repair.failed_ns - repair.up_ns > times::kLongLifeNs) {
    repair.attempts.reset();
    if (!is_stand_in(comm, path)) repair.forget_returns();
  }
  comm.gate().raise_alarm();
  repair.peer_fenced_ns = 0;
  repair.tries = 0;
  repair.last_try.clear();
  const Status fenced = comm.fence(path);
  repair.fenced_ns = now_ns();
  if (fenced) return true;
  if (fenced.error().code == Errc::kNoMemory) {
    (void)give_up_.on_fault(comm, Errc::kSystem, "go on without a path", describe(fenced.error()));
    return false;
  }
  take_local(comm, path, PathEvent::Kind::kFenceRefused);
  return true;
}

bool Recover::take_report(Comm& comm, std::size_t path) {
  Repair& repair = repair_of(comm, path);
  comm.close_report(path);
  if (comm.role() == Role::kSend) {
    repair.ours = static_cast<SendComm&>(comm).take_report();
    return true;
  }
  const auto report = static_cast<RecvComm&>(comm).take_report();
  if (report) {
    repair.ours = *report;
  } else {
    give_up_.on_protocol_error(comm, "parts of more messages than a sender has under way");
  }
  return report.has_value();
}

void Recover::resume(Comm& comm, std::size_t path, const Repair& repair) {
  if (comm.role() == Role::kSend) {
    const auto& report = std::get<wire::ReceiverReport>(repair.theirs);
    const wire::LineSet finished = static_cast<SendComm&>(comm).resume(path, report);
    if (!finished.empty()) send_finished(comm, path, repair, finished);
  } else {
    static_cast<RecvComm&>(comm).resume(path, std::get<wire::SenderReport>(repair.theirs));
  }
  const std::string name = comm.name_for_log(path);
  const std::size_t all = comm.paths().size();
  std::size_t left = 0;
  for (std::size_t other = 0; other < all; ++other) left += comm.is_up(other) ? 1 : 0;
  if (left == 0) {
    BL_WARN("%s: path %zu of %zu is out of use: %s. No other path works: the connection waits",
            name.c_str(), path + 1, all, repair.cause.c_str());
    return;
  }
  const double ms = static_cast<double>(now_ns() - repair.failed_ns) / kNsPerMs;
  BL_WARN(
      "%s: path %zu of %zu is out of use: %s. The other paths (%zu) took over %.1f ms after this "
      "end had noticed",
      name.c_str(), path + 1, all, repair.cause.c_str(), left, ms);
}

void Recover::send_finished(Comm& comm, std::size_t path, const Repair& repair,
                            const wire::LineSet& finished) {
  comm.link().send_about_path(wire::Fenced{.path = static_cast<std::uint8_t>(path),
                                           .generation = repair.status.generation,
                                           .has_peer_report = true,
                                           .report = repair.ours,
                                           .finished = finished});
}

// --- A new generation ---

void Recover::order_queues(Comm& comm, std::size_t path, const PathMessage* message) {
  MakePath wanted = {
      .devices = devices_for(comm, path), .offer = {}, .has_loopback = comm.has_loopback(path)};
  ++repair_of(comm, path).tries;
  if (comm.role() == Role::kReceive) {
    const auto& offer = std::get<wire::OfferPath>(*message);
    wanted.offer = offer.offer;
    wanted.ring_key = offer.ring_key;
  }
  comm.link().order({.path = static_cast<std::uint8_t>(path),
                     .generation = repair_of(comm, path).status.generation,
                     .what = std::move(wanted)});
}

void Recover::drop_made(Comm& comm, std::size_t path) {
  Repair& repair = repair_of(comm, path);
  if (repair.made != nullptr) comm.link().discard(std::move(repair.made));
  comm.link().order({.path = static_cast<std::uint8_t>(path),
                     .generation = repair.status.generation,
                     .what = DropPath{}});
}

bool Recover::join(Comm& comm, std::size_t path, Repair& repair) {
  BL_ASSERT(repair.made != nullptr, "what joins has been made");
  if (!fits_rail(comm, path, *repair.made->device)) return false;
  if (comm.role() == Role::kSend) {
    static_cast<SendComm&>(comm).take_line_keys(path, repair.line_keys);
  }
  if (!comm.join(path, *repair.made, repair.status.generation)) return false;
  comm.link().discard(std::move(repair.made));  // the former ones
  repair.is_device_gone = repair.is_device_left = false;
  return true;
}

// The event by which the path that was made comes into use.
void Recover::join_made(Comm& comm, std::size_t path) {
  Repair& repair = repair_of(comm, path);
  const bool is_sender = repair.status.is_sender;
  if (take_local(comm, path, is_sender ? PathEvent::Kind::kProbed : PathEvent::Kind::kQueuesMade) ||
      now_ns() < repair.join_until_ns) {
    return;
  }
  comm.link().discard(std::move(repair.made));
  take_local(comm, path, PathEvent::Kind::kQueuesFailed);
}

void Recover::on_state(Comm& comm, std::size_t path, Repair& repair) {
  const std::int64_t now = now_ns();
  repair.attempts.stop();
  repair.repeats.stop();
  switch (repair.status.state) {
    case PathState::kUp: on_up(comm, path, repair, now); break;
    case PathState::kClear:
      // The connection manager's queue pairs are not made anew. If a device is gone, there is news
      // when it is back.
      if (comm.paths()[path].queues.cm) break;
      if (!repair.is_device_gone || is_usable(comm, path)) repair.attempts.wait(now);
      break;
    case PathState::kFenced:
    case PathState::kOffered:
    case PathState::kAnswered:
      repair.repeats.reset();
      repair.repeats.wait(now);
      break;
    case PathState::kFencing:
      if (!repair.status.is_unfenced) break;
      repair.repeats.reset();
      repair.repeats.wait(now);
      break;
    case PathState::kMaking:
    case PathState::kProbing: break;
  }
}

void Recover::on_up(Comm& comm, std::size_t path, Repair& repair, std::int64_t now) {
  repair.up_ns = now;
  // It was only slow, or its peer was: its next silence has to be longer.
  const bool was_wrong = std::exchange(repair.was_silent, false) &&
                         now - repair.failed_ns < times::kFalseAlarmNs &&
                         comm.paths()[path].device->history->newest_ns() < repair.failed_ns;
  if (was_wrong && silence_ != nullptr) silence_->was_wrong_about(path);
  const double seconds = static_cast<double>(now - repair.failed_ns) / 1e9;
  const std::string stands_in =
      is_stand_in(comm, path) ? ". This device stands in for " + label(own_device(comm, path)) : "";
  BL_WARN("%s: path %zu of %zu is in use again after %.3f s (generation %u)%s",
          comm.name_for_log(path).c_str(), path + 1, comm.paths().size(), seconds,
          repair.status.generation, stands_in.c_str());
}

}  // namespace beeline
