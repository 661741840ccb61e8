// SPDX-License-Identifier: Apache-2.0
//
// Carries out the engine's commands, and says what has happened.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/check/assert.h"
#include "plugin/recovery/recover.h"
#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/send_comm.h"

namespace beeline {
namespace {

// The local time `ago_ns` before now, as "2026-03-01 14:03:22".
std::string time_before(std::int64_t ago_ns) {
  const std::time_t then = std::time(nullptr) - ago_ns / kNsPerSec;
  std::tm parts = {};
  char text[32] = "";
  if (localtime_r(&then, &parts) != nullptr) std::strftime(text, sizeof text, "%F %T", &parts);
  return text;
}

}  // namespace

void Recover::carry_out(Comm& comm, const RepairCommands& commands, const PathMessage* message) {
  for (const RepairCommand& command : commands) {
    if (has_ended()) return;
    const std::optional<RepairEvent> result = carry_out(comm, command, message);
    if (result) carry_out(comm, state_->engine.on(*result, moment(comm)), nullptr);
  }
  if (has_ended()) return;
  for (Path& path : comm.paths()) {
    BL_ASSERT(path.posts == state_->engine.is_up(path.index),
              "the comm uses a path if, and only if, its state says so");
    comm.set_state(path, state_->engine.state(path.index));
  }
}

std::optional<RepairEvent> Recover::carry_out(Comm& comm, const RepairCommand& command,
                                              const PathMessage* message) {
  const std::size_t path = command.path;
  Path& own = comm.paths()[path];
  RepairEvent result = {.path = command.path};
  switch (command.kind) {
    case RepairCommand::Kind::kAct: return act(comm, command, message);
    case RepairCommand::Kind::kAskOwnPort: return ask_own_port(comm, path);
    case RepairCommand::Kind::kLeaveDevice:
      if (!comm.lose_device_of(own)) return {};
      result.kind = RepairEvent::Kind::kDeviceLeft;
      return result;
    case RepairCommand::Kind::kJoin:
      result.kind = join(comm, path) ? RepairEvent::Kind::kJoined : RepairEvent::Kind::kJoinLater;
      result.is_stand_in = own.is_stand_in();
      return result;
    case RepairCommand::Kind::kDiscardMade: discard_made(comm, path); return {};
    case RepairCommand::Kind::kCheckFinished: check_finished(comm, path); return {};
    case RepairCommand::Kind::kOwnWorks:
    case RepairCommand::Kind::kBesideOwn:
      repair_of(comm, path).cause = why_stand_in_leaves(comm, command);
      result.kind = RepairEvent::Kind::kOfPath;
      result.of_path.kind = PathEvent::Kind::kFailed;
      return result;
    case RepairCommand::Kind::kSayUp: say_up(comm, path, command.was_silent); return {};
    case RepairCommand::Kind::kSayWaiting:
      BL_WARN("%s: the connection waits: %s", comm.name_for_log().c_str(),
              describe_outage(comm, "").c_str());
      return {};
    case RepairCommand::Kind::kEndNoPath: end_without_path(comm); return {};
    case RepairCommand::Kind::kEndNoDevice:
      (void)on_fault(comm, Errc::kSystem, "move data",
                     "the cause is at " + ends_of(comm, 0).here + ": " + kGoneText +
                         ", and is not back within BEELINE_DEVICE_WAIT");
      return {};
    case RepairCommand::Kind::kEndMute: end_for_mute_peer(comm, path); return {};
    case RepairCommand::Kind::kEndNeitherFences:
      (void)on_fault(comm, Errc::kSystem, "go on without a path",
                     "the devices of neither end move the queue pair of a path to ERROR");
      return {};
  }
  return {};
}

std::optional<RepairEvent> Recover::act(Comm& comm, const RepairCommand& command,
                                        const PathMessage* message) {
  const std::size_t path = command.path;
  PathRepair& known = repair_of(comm, path);
  const auto note = [&](wire::PathNews news) {
    send(comm,
         wire::PathNote{.path = command.path, .generation = command.generation, .news = news});
  };
  switch (command.action) {
    case PathAction::kDetach:
    case PathAction::kAllowGrants:
      comm.set_state(comm.paths()[path], state_->engine.state(path));
      break;
    case PathAction::kMoveToError: return fence(comm, path);
    case PathAction::kTakeReport: take_report(comm, path); break;
    case PathAction::kKeepPeerReport:
      if (const auto* const offer = std::get_if<wire::OfferPath>(message)) {
        known.theirs = offer->report;
      } else {
        known.theirs = std::get<wire::Fenced>(*message).report;
      }
      break;
    case PathAction::kResolve: resume(comm, path, command.generation); break;
    case PathAction::kDestroyQueues:
      discard_made(comm, path);
      comm.link().order(
          {.path = command.path, .generation = command.generation, .what = DropPath{}});
      break;
    case PathAction::kMakeQueues: order_queues(comm, command, message); break;
    case PathAction::kConnectQueues: {
      const auto& answer = std::get<wire::AnswerPath>(*message);
      known.line_keys = answer.line_keys;
      comm.link().order({.path = command.path,
                         .generation = command.generation,
                         .what = ConnectPath{answer.answer, answer.window_key}});
      break;
    }
    case PathAction::kSendFenced:
      send_fenced(comm, path, command.generation, command.has_peer_report);
      break;
    case PathAction::kSendOffer:
      send(comm, wire::OfferPath{.path = command.path,
                                 .generation = command.generation,
                                 .report = std::get<wire::SenderReport>(known.ours),
                                 .offer = known.offer,
                                 .window_key = known.window_key});
      break;
    case PathAction::kSendAnswer:
      send(comm, wire::AnswerPath{
                     .path = command.path,
                     .generation = command.generation,
                     .answer = known.answer,
                     .window_key = known.window_key,
                     .line_keys = static_cast<RecvComm&>(comm).line_keys(comm.paths()[path])});
      break;
    case PathAction::kSendNotNow: note(wire::PathNews::kNotNow); break;
    case PathAction::kSendWell: note(wire::PathNews::kWell); break;
    case PathAction::kSendReady: note(wire::PathNews::kReady); break;
    case PathAction::kSendCannotFence: note(wire::PathNews::kCannotFence); break;
    case PathAction::kProtocolError:
      on_protocol_error(comm, "a message about a path that does not fit its state");
      break;
  }
  return {};
}

// --- A path fails ---

std::optional<RepairEvent> Recover::fence(Comm& comm, std::size_t path) {
  comm.gate().raise_alarm();
  ending_.forget_suspicion_of(path);  // other paths show what it was worth
  PathRepair& known = repair_of(comm, path);
  known.last_try.clear();
  if (comm.role() == Role::kSend) known.finished = {};
  const Status fenced = comm.fence(comm.paths()[path]);
  if (fenced) return {};
  if (fenced.error().code == Errc::kNoMemory) {
    (void)on_fault(comm, Errc::kSystem, "go on without a path", describe(fenced.error()));
    return {};
  }
  RepairEvent refused = {.kind = RepairEvent::Kind::kOfPath,
                         .path = static_cast<std::uint8_t>(path)};
  refused.of_path.kind = PathEvent::Kind::kFenceRefused;
  return refused;
}

void Recover::take_report(Comm& comm, std::size_t path) {
  PathRepair& known = repair_of(comm, path);
  comm.set_state(comm.paths()[path], state_->engine.state(path));
  if (comm.role() == Role::kSend) {
    known.ours = static_cast<SendComm&>(comm).take_report();
  } else if (const auto report = static_cast<RecvComm&>(comm).take_report()) {
    known.ours = *report;
  } else {
    on_protocol_error(comm, "parts of more messages than a sender has under way");
  }
}

void Recover::resume(Comm& comm, std::size_t path, std::uint32_t generation) {
  PathRepair& known = repair_of(comm, path);
  if (comm.role() == Role::kReceive) {
    static_cast<RecvComm&>(comm).resume(comm.paths()[path],
                                        std::get<wire::SenderReport>(known.theirs));
  } else {
    known.finished = static_cast<SendComm&>(comm).resume(
        comm.paths()[path], std::get<wire::ReceiverReport>(known.theirs));
    if (!known.finished.empty()) send_fenced(comm, path, generation, true);
  }
  say_resumed(comm, path);
}

// With the lines for which nothing more will be sent, once they are known.
void Recover::send_fenced(Comm& comm, std::size_t path, std::uint32_t generation,
                          bool has_peer_report) {
  const PathRepair& known = repair_of(comm, path);
  wire::Fenced message = {.path = static_cast<std::uint8_t>(path),
                          .generation = generation,
                          .has_peer_report = has_peer_report,
                          .report = known.ours};
  if (comm.role() == Role::kSend) message.finished = known.finished;
  send(comm, message);
}

void Recover::check_finished(Comm& comm, std::size_t path) {
  comm.collect();
  const PathRepair& known = repair_of(comm, path);
  const auto& receiver = static_cast<const RecvComm&>(comm);
  if (receiver.lines().missing_of(known.finished, known.finished_end).empty()) return;
  (void)on_fault(comm, Errc::kSystem, "receive",
                 "the cause is at " + ends_of(comm, path).here +
                     ": its device has acknowledged data that it has lost");
}

// --- A new generation ---

void Recover::order_queues(Comm& comm, const RepairCommand& command, const PathMessage* message) {
  MakePath wanted = {.devices = devices_for(comm, command),
                     .offer = {},
                     .has_loopback = comm.needs_loopback(comm.paths()[command.path])};
  if (comm.role() == Role::kReceive) {
    const auto& offer = std::get<wire::OfferPath>(*message);
    wanted.offer = offer.offer;
    wanted.window_key = offer.window_key;
  }
  comm.link().order(
      {.path = command.path, .generation = command.generation, .what = std::move(wanted)});
}

void Recover::discard_made(Comm& comm, std::size_t path) {
  PathRepair& known = repair_of(comm, path);
  if (known.made != nullptr) comm.link().discard(std::move(known.made));
}

bool Recover::join(Comm& comm, std::size_t path) {
  PathRepair& known = repair_of(comm, path);
  BL_ASSERT(known.made != nullptr, "what joins has been made");
  if (!fits_rail(comm, path, *known.made->device)) return false;
  if (comm.role() == Role::kSend) {
    static_cast<SendComm&>(comm).take_line_keys(comm.paths()[path], known.line_keys);
  }
  if (!comm.join(comm.paths()[path], *known.made, state_->engine.status(path).generation))
    return false;
  comm.link().discard(std::move(known.made));  // the former ones
  return true;
}

// --- Sentences ---

void Recover::say_resumed(Comm& comm, std::size_t path) {
  const std::string name = comm.name_for_log(path);
  const std::string& cause = repair_of(comm, path).cause;
  const std::size_t all = comm.paths().size();
  std::size_t left = 0;
  for (std::size_t other = 0; other < all; ++other) left += comm.is_up(other) ? 1 : 0;
  if (left == 0) {
    BL_WARN("%s: path %zu of %zu is out of use: %s. No other path works: the connection waits",
            name.c_str(), path + 1, all, cause.c_str());
    return;
  }
  const double ms = static_cast<double>(now_ns() - state_->engine.failed_ns(path)) / kNsPerMs;
  BL_WARN(
      "%s: path %zu of %zu is out of use: %s. The other paths (%zu) took over %.1f ms after this "
      "end had noticed",
      name.c_str(), path + 1, all, cause.c_str(), left, ms);
}

void Recover::say_up(Comm& comm, std::size_t path, bool was_silent) {
  const std::int64_t failed_ns = state_->engine.failed_ns(path);
  const std::int64_t took_ns = now_ns() - failed_ns;
  // It was only slow, or its peer was: its next silence has to be longer.
  const bool was_wrong = was_silent && took_ns < times::kFalseAlarmNs &&
                         comm.paths()[path].resources->device->history->newest_ns() < failed_ns;
  if (was_wrong) silence_->was_wrong_about(*comm.paths()[path].silence);
  const std::string stands_in =
      comm.paths()[path].is_stand_in()
          ? ". This device stands in for " + label(comm.paths()[path].own_device())
          : "";
  BL_WARN("%s: path %zu of %zu is in use again after %.3f s (generation %u)%s",
          comm.name_for_log(path).c_str(), path + 1, comm.paths().size(),
          static_cast<double>(took_ns) / kNsPerSec, state_->engine.status(path).generation,
          stands_in.c_str());
}

std::string Recover::describe_outage(Comm& comm, const char* remark) {
  const std::int64_t length_ns = state_->engine.outage_ns(now_ns());
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f s", static_cast<double>(length_ns) / kNsPerSec);
  std::string text = "no path has worked since " + time_before(length_ns) + " (" + seconds + ")";
  text += remark;
  for (std::size_t path = 0; path < comm.paths().size(); ++path) {
    const PathRepair& known = repair_of(comm, path);
    const Ends ends = ends_of(comm, path);
    text += ". Path " + std::to_string(path + 1) + " of " + std::to_string(comm.paths().size()) +
            ", between " + ends.here + " and " + ends.there + ", as " + ends.here +
            " sees it: " + known.cause;
    const std::uint32_t tries = state_->engine.tries(path);
    if (tries == 0) continue;
    text += "; attempts to connect it again: " + std::to_string(tries);
    if (!known.last_try.empty()) text += ", the last one failed: " + known.last_try;
  }
  return text;
}

void Recover::end_for_mute_peer(Comm& comm, std::size_t path) {
  const PeerName& peer = comm.link().peer();
  (void)on_fault(comm, Errc::kPeerClosed, "go on",
                 "path " + std::to_string(path + 1) + " has failed, and " + peer.host + " (pid " +
                     std::to_string(peer.pid) +
                     ") has said nothing about that for BEELINE_PEER_TIMEOUT, although its control "
                     "channel is open: its control thread may hang in a call to its driver, or "
                     "something between both hosts swallows what it sends");
}

void Recover::end_without_path(Comm& comm) {
  const bool is_own_fault = state_->engine.is_any_port_unwell();
  (void)on_fault(comm, is_own_fault ? Errc::kSystem : Errc::kPeerClosed, "go on",
                 describe_outage(comm, ", which is longer than BEELINE_GIVE_UP_AFTER"));
}

}  // namespace beeline
