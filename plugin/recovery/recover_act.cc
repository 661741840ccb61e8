// SPDX-License-Identifier: Apache-2.0
//
// Carries out the engine's commands, and says what has happened.
#include <algorithm>
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
    case RepairCommand::Kind::kPrepare: prepare(comm, command); return {};
    case RepairCommand::Kind::kDropPrepared: drop_prepared(comm, path); return {};
    case RepairCommand::Kind::kAskToMove:
      send(comm, wire::PathNote{.path = command.path,
                                .generation = state_->engine.status(path).generation,
                                .news = wire::PathNews::kMove});
      return {};
    case RepairCommand::Kind::kMove:
    case RepairCommand::Kind::kBesideOwn: {
      const bool moves = command.kind == RepairCommand::Kind::kMove;
      note_failure(
          comm, path, moves ? "other queue pairs are ready" : why_stand_in_leaves(comm, path),
          moves ? wire::PathTrouble::kMoves : wire::PathTrouble::kLeaves, wire::PathTrouble::kNone);
      result.kind = RepairEvent::Kind::kOfPath;
      result.of_path.kind = PathEvent::Kind::kFailed;
      return result;
    }
    case RepairCommand::Kind::kSayUp: say_up(comm, command); return {};
    case RepairCommand::Kind::kSayWaiting: say_waiting(comm); return {};
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
    case PathAction::kMakeQueues: return make_queues(comm, command, message);
    case PathAction::kConnectQueues:
      return connect_queues(comm, command, std::get<wire::AnswerPath>(*message));
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
                          .trouble = known.trouble,
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

std::optional<RepairEvent> Recover::make_queues(Comm& comm, const RepairCommand& command,
                                                const PathMessage* message) {
  const bool is_receiver = comm.role() == Role::kReceive;
  std::optional<std::uint32_t> peer_qpn;
  if (is_receiver) peer_qpn = std::get<wire::OfferPath>(*message).offer.qp.qpn;
  PathRepair& known = repair_of(comm, command.path);
  const bool is_awaited = is_receiver && known.prepared && known.prepared->is_answered &&
                          known.prepared->resources == nullptr &&
                          known.prepared->generation == command.generation &&
                          known.prepared->peer_qpn == *peer_qpn;
  if (is_awaited) return {};  // take_awaited() follows
  if (auto ready = use_prepared(comm, command.path, command.generation, peer_qpn)) {
    RepairEvent result = {.path = command.path};
    if (is_receiver) {
      adopt(known, *std::move(ready));
      result.kind = RepairEvent::Kind::kConnected;
    } else {
      known.window_key = ready->window_key;
      known.offer = ready->offer;
      known.prepared = std::move(ready);  // until the receiver has answered
      result.kind = RepairEvent::Kind::kOfPath;
      result.of_path.kind = PathEvent::Kind::kQueuesMade;
    }
    return result;
  }
  MakePath wanted = {
      .devices = {}, .offer = {}, .has_loopback = comm.needs_loopback(comm.paths()[command.path])};
  std::uint32_t turn = command.turn;
  if (is_receiver) {
    const auto& offer = std::get<wire::OfferPath>(*message);
    wanted.offer = offer.offer;
    wanted.window_key = offer.window_key;
    turn = turn_for(known, offer);
  }
  wanted.devices = devices_for(comm, command.path, command.may_stand_in, turn);
  comm.link().order(
      {.path = command.path, .generation = command.generation, .what = std::move(wanted)});
  return {};
}

// If the offer was one of prepared queue pairs, the receiver has to have answered with its own.
std::optional<RepairEvent> Recover::connect_queues(Comm& comm, const RepairCommand& command,
                                                   const wire::AnswerPath& answer) {
  PathRepair& known = repair_of(comm, command.path);
  known.line_keys = answer.line_keys;
  if (!known.prepared) {
    comm.link().order({.path = command.path,
                       .generation = command.generation,
                       .what = ConnectPath{answer.answer, answer.window_key}});
    return {};
  }
  RepairEvent result = {.kind = RepairEvent::Kind::kConnected, .path = command.path};
  auto ready = use_prepared(comm, command.path, command.generation, answer.answer.qp.qpn);
  if (ready) {
    known.made = std::move(ready->resources);
  } else {
    result.kind = RepairEvent::Kind::kOfPath;
    result.of_path.kind = PathEvent::Kind::kQueuesFailed;
  }
  return result;
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

}  // namespace beeline
