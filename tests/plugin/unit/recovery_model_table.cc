// SPDX-License-Identifier: Apache-2.0
//
// An end and one of its paths: the product's engine, reports and decisions.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugin/repair/engine.h"
#include "plugin/transfer/path_reports.h"
#include "plugin/wire/limits.h"
#include "plugin/wire/reports.h"
#include "tests/plugin/unit/recovery_model_world.h"

namespace beeline::test {
namespace {

using Kind = PathEvent::Kind;

// The one buffer of optional receives, or the first of several.
constexpr std::uint64_t kBuffer = 0x1000;
constexpr std::uint32_t kCapacity = 0x100;

PathStatus status_of(const ModelEnd& end, bool is_sender) {
  return {.state = static_cast<PathState>(end.state),
          .is_sender = is_sender,
          .is_port_well = end.is_port_well,
          .has_peer_report = end.has_peer_report,
          .is_unfenced = end.is_unfenced,
          .generation = end.generation,
          .refused = end.refused};
}

void set_status(ModelEnd& end, const PathStatus& status) {
  end.state = static_cast<std::uint8_t>(status.state);
  end.is_port_well = status.is_port_well;
  end.has_peer_report = status.has_peer_report;
  end.is_unfenced = status.is_unfenced;
  end.generation = static_cast<std::uint8_t>(status.generation);
  end.refused = static_cast<std::uint8_t>(status.refused);
}

// Lines that share a place in the model's ring share one in the product's, which has more places.
// Positions wrap around after the first line.
std::uint32_t position_of(const ModelOptions& options, std::size_t line) noexcept {
  const auto stride = static_cast<std::uint32_t>(wire::kMaxLines) / options.ring;
  return (static_cast<std::uint32_t>(line) - 1) * stride;
}

bool is_empty(const ByLine& lines) {
  return std::ranges::all_of(lines, [](Chunks chunks) { return chunks == 0; });
}

}  // namespace

// --- The engine and its commands ---

void ModelWorld::event(bool is_sender, std::uint8_t path, const PathEvent& event,
                       std::uint16_t report) {
  RepairEvent fed = {.kind = RepairEvent::Kind::kOfPath, .path = path, .of_path = event};
  // A queue pair that is connected is joined before the table hears of it.
  const bool is_connected =
      event.kind == Kind::kProbed || (event.kind == Kind::kQueuesMade && !is_sender);
  if (is_connected) fed.kind = RepairEvent::Kind::kConnected;
  run(is_sender, fed, report);
}

// The model has no time, so an engine knows the states of its paths and nothing else.
void ModelWorld::run(bool is_sender, const RepairEvent& event, std::uint16_t report) {
  RepairEngine::Facts facts = {.is_sender = is_sender, .paths = options().paths};
  for (std::uint8_t path = 0; path < options().paths; ++path) {
    facts.path[path] = {.rail = path, .status = status_of(end(is_sender, path), is_sender)};
  }
  RepairEngine engine(facts);
  const RepairCommands commands = engine.on(event, {.ns = 1});
  for (std::uint8_t path = 0; path < options().paths; ++path) {
    set_status(end(is_sender, path), engine.status(path));
  }
  for (const RepairCommand& command : commands) {
    if (command.kind == RepairCommand::Kind::kAct) act(is_sender, command, report);
    if (command.kind != RepairCommand::Kind::kJoin) continue;
    join(is_sender, end(is_sender, command.path));
    run(is_sender, {.kind = RepairEvent::Kind::kJoined, .path = command.path}, report);
  }
}

void ModelWorld::join(bool is_sender, ModelEnd& our) {
  our.is_joined = true;
  if (is_sender) {
    our.own_report = 0;
  } else {
    our.live = static_cast<std::uint8_t>(our.generation + 1);
  }
}

void ModelWorld::act(bool is_sender, const RepairCommand& command, std::uint16_t report) {
  const std::uint8_t path = command.path;
  ModelEnd& our = end(is_sender, path);
  switch (command.action) {
    case PathAction::kDetach: our.is_joined = our.may_grant = false; break;
    case PathAction::kMoveToError:
      our.is_joined = our.may_grant = false;
      if (options().refuses == (is_sender ? ModelRefuses::kSender : ModelRefuses::kReceiver)) {
        local(is_sender, path, Kind::kFenceRefused);
      } else {
        our.live = 0;
      }
      break;
    case PathAction::kTakeReport:
      is_sender ? take_report_of_sender(path) : take_report_of_receiver(path);
      break;
    case PathAction::kKeepPeerReport: our.peer_report = report; break;
    case PathAction::kResolve:
      is_sender ? resolve_as_sender(path) : resolve_as_receiver(path);
      // The former queue pair is not polled any more.
      (is_sender ? state_.paths[path].acks : state_.paths[path].notices) = {};
      break;
    case PathAction::kDestroyQueues: destroy_queues(is_sender, path); break;
    case PathAction::kMakeQueues: make_queues(is_sender, path); break;
    case PathAction::kConnectQueues:
      our.live = static_cast<std::uint8_t>(our.generation + 1);
      break;
    case PathAction::kAllowGrants: our.may_grant = true; break;
    case PathAction::kSendFenced: send_message(is_sender, Kind::kPeerFenced, command); break;
    case PathAction::kSendCannotFence:
      send_message(is_sender, Kind::kPeerCannotFence, command);
      break;
    case PathAction::kSendOffer: send_message(is_sender, Kind::kOffer, command); break;
    case PathAction::kSendAnswer: send_message(is_sender, Kind::kAnswer, command); break;
    case PathAction::kSendNotNow: send_message(is_sender, Kind::kNotNow, command); break;
    case PathAction::kSendWell: send_message(is_sender, Kind::kWell, command); break;
    case PathAction::kSendReady: send_message(is_sender, Kind::kReady, command); break;
    case PathAction::kProtocolError: claim(false, "no end breaks the protocol"); break;
  }
}

void ModelWorld::send_message(bool is_sender, Kind kind, const RepairCommand& command) {
  const bool has_report = kind == Kind::kPeerFenced || kind == Kind::kOffer;
  send(is_sender,
       {.report = has_report ? end(is_sender, command.path).own_report : std::uint16_t{0},
        .kind = static_cast<std::uint8_t>(kind),
        .path = command.path,
        .generation = static_cast<std::uint8_t>(command.generation),
        .peer_has_report = kind == Kind::kPeerFenced && command.has_peer_report});
}

void ModelWorld::destroy_queues(bool is_sender, std::uint8_t path) {
  const ModelPath& both = state_.paths[path];
  const bool is_unused =
      is_sender ? is_empty(both.carried) && is_empty(both.acks) : is_empty(both.notices);
  claim(is_unused, "a queue pair that has carried something is not destroyed at once");
  end(is_sender, path).live = 0;
}

void ModelWorld::make_queues(bool is_sender, std::uint8_t path) {
  const ModelPath& both = state_.paths[path];
  ModelEnd& our = end(is_sender, path);
  const bool is_clear =
      is_sender ? is_empty(both.carried) && is_empty(both.acks)
                : is_empty(both.notices) && std::ranges::count(state_.carriers, path) == 0;
  claim(is_clear, "a new generation begins when the old one is resolved");
  claim(our.generation > our.made, "no generation is used twice");
  our.made = our.generation;
  our.peer_report = 0;
  if (!is_sender) our.own_report = 0;
}

// --- Reports ---

std::size_t ModelWorld::first_in_ring() const noexcept {
  return std::max(state_.next, options().ring) - options().ring;
}

std::vector<GrantedLine> ModelWorld::lines_in_ring() const {
  std::vector<GrantedLine> lines;
  for (std::size_t line = first_in_ring(); line < state_.next; ++line) {
    const std::size_t buffer = options().optional ? 0 : line;
    lines.push_back({.position = position_of(options(), line),
                     .capacity = kCapacity,
                     .address = kBuffer + buffer * kCapacity,
                     .arrived = state_.got[line],
                     .carrier = state_.carriers[line],
                     .waits = state_.got[line] != all_of(line),
                     .is_optional = options().optional,
                     .is_reported_missing = state_.is_reported_missing[line]});
  }
  return lines;
}

bool ModelWorld::may_grant_next() const {
  const std::uint8_t line = state_.next;
  if (line == options().lines) return false;
  if (line >= options().ring) {
    const std::size_t before = line - options().ring;
    if (state_.got[before] != all_of(before)) return false;
  }
  if (!options().optional || line == 0) return true;
  // NCCL grants the buffer anew when it sees the data of the receive before.
  if (state_.memory[line - 1U] != all_of(line - 1U)) return false;
  return !overlaps_reported_line(lines_in_ring(), kBuffer, kCapacity);
}

void ModelWorld::take_report_of_sender(std::uint8_t path) {
  const auto is_held = [this](std::uint32_t position) {
    for (std::size_t line = 0; line < options().lines; ++line) {
      const bool is_there = state_.ring[line % options().ring] == line + 1;
      if (is_there && position_of(options(), line) == position) return true;
    }
    return false;
  };
  const std::uint32_t taken = position_of(options(), state_.taken);
  end(true, path).own_report = model_.sender_reports().number(take_sender_report(taken, is_held));
}

void ModelWorld::take_report_of_receiver(std::uint8_t path) {
  std::vector<GrantedLine> lines = lines_in_ring();
  const auto report = take_receiver_report(position_of(options(), state_.next), lines);
  claim(report && wire::is_consistent(*report), "the receiver can report everything");
  if (!report) return;
  end(false, path).own_report = model_.receiver_reports().number(*report);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t line = first_in_ring() + i;
    if (!lines[i].waits) state_.got[line] = all_of(line);
    state_.is_reported_missing[line] = options().optional && lines[i].is_reported_missing;
  }
}

void ModelWorld::resolve_as_sender(std::uint8_t path) {
  const wire::ReceiverReport& report = model_.receiver_reports()[end(true, path).peer_report];
  ByLine& carried = state_.paths[path].carried;
  for (std::size_t line = 0; line < options().lines; ++line) {
    const ChunkFate fate =
        resolve_chunks(report, {.position = position_of(options(), line), .chunks = carried[line]});
    carried[line] = 0;
    acknowledge(line, static_cast<Chunks>(fate.arrived));
    state_.unsent[line] |= static_cast<Chunks>(fate.missing);
  }
}

void ModelWorld::resolve_as_receiver(std::uint8_t path) {
  std::vector<GrantedLine> lines = lines_in_ring();
  resolve_grants(model_.sender_reports()[end(false, path).peer_report], path, lines);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    state_.carriers[first_in_ring() + i] = lines[i].carrier;
  }
}

}  // namespace beeline::test
