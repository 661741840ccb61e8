// SPDX-License-Identifier: Apache-2.0
//
// A path that works moves to another device, or to other queue pairs of the same: the next
// generation is made, connected and probed at both ends while the path carries data. Only then is
// the path fenced. What follows is the same as after a failure (path_machine.h), but the queue
// pairs are there, so that the data stands still for the time of two messages and their answers.
//
// A path that has failed is prepared in the same way if the connection manager connects it: the
// receiver's queue pair is connected only when the sender has got its answer.
//
//   receiver: PATH_NOTE kMove, if its device is the one that changes
//   sender:   OFFER_PATH prepares -- ANSWER_PATH prepares or PATH_NOTE kNotNow comes -- probe
//   sender:   FENCED kMoves, and so on
//
// The messages are not repeated: if one is lost, the move is given up, and tried again later.
#include <optional>
#include <utility>
#include <variant>

#include "common/base/log.h"
#include "plugin/recovery/recover.h"
#include "plugin/transfer/comm.h"

namespace beeline {
namespace {

RepairEvent move_event(std::size_t path, RepairEvent::Kind kind) noexcept {
  return {.kind = kind, .path = static_cast<std::uint8_t>(path)};
}

}  // namespace

void Recover::prepare(Comm& comm, const RepairCommand& command) {
  drop_prepared(comm, command.path);
  const Path& path = comm.paths()[command.path];
  MakePath wanted = {
      .devices = {path.resources->device}, .offer = {}, .has_loopback = comm.needs_loopback(path)};
  if (!command.keeps_device) {
    wanted.devices = path.posts
                         ? std::vector{&path.own_device()}
                         : devices_for(comm, command.path, command.may_stand_in, command.turn);
  }
  repair_of(comm, command.path).prepared.emplace().generation = command.generation;
  comm.link().order({.path = command.path,
                     .generation = command.generation,
                     .prepares = true,
                     .what = std::move(wanted)});
}

// Messages that an end of the other role may not send are left to the table, which treats them as a
// violation of the protocol.
bool Recover::take_move_message(Comm& comm, const PathMessage& message) {
  if (comm.role() == Role::kReceive) {
    const auto* const offer = std::get_if<wire::OfferPath>(&message);
    if (offer == nullptr || !offer->prepares) return false;
    prepare_for(comm, *offer);
    return true;
  }
  if (const auto* const answer = std::get_if<wire::AnswerPath>(&message)) {
    if (answer->prepares) connect_prepared(comm, *answer);
    return answer->prepares;
  }
  const auto* const note = std::get_if<wire::PathNote>(&message);
  if (note == nullptr) return false;
  const RepairEngine& engine = state_->engine;
  if (note->news == wire::PathNews::kMove) {
    if (note->generation == engine.status(note->path).generation)
      take(comm, move_event(note->path, RepairEvent::Kind::kMoveAsked));
    return true;
  }
  const bool is_refusal =
      note->news == wire::PathNews::kNotNow && engine.may_prepare(note->path, note->generation);
  if (is_refusal && engine.prepares(note->path, note->generation))
    take(comm, move_event(note->path, RepairEvent::Kind::kNotPrepared));
  return is_refusal;
}

// The first answer counts.
void Recover::connect_prepared(Comm& comm, const wire::AnswerPath& answer) {
  PathRepair& known = repair_of(comm, answer.path);
  const bool is_awaited = state_->engine.prepares(answer.path, answer.generation) &&
                          known.prepared && known.prepared->generation == answer.generation &&
                          known.prepared->peer_qpn == 0;
  if (!is_awaited) return;
  known.prepared->peer_qpn = answer.answer.qp.qpn;
  comm.link().order({.path = answer.path,
                     .generation = answer.generation,
                     .prepares = true,
                     .what = ConnectPath{answer.answer, answer.window_key}});
}

// With a move, the receiver goes over to its own device, if that works. For a path that has failed,
// others may stand in.
void Recover::prepare_for(Comm& comm, const wire::OfferPath& offer) {
  if (!state_->engine.may_prepare(offer.path, offer.generation)) return;
  drop_prepared(comm, offer.path);
  const Path& path = comm.paths()[offer.path];
  PathRepair& known = repair_of(comm, offer.path);
  PreparedPath& prepared = known.prepared.emplace();
  prepared.generation = offer.generation;
  prepared.peer_qpn = offer.offer.qp.qpn;
  const bool may_stand_in = !path.posts && !comm.has_usable_path();
  MakePath order = {.devices = devices_for(comm, offer.path, may_stand_in, turn_for(known, offer)),
                    .offer = offer.offer,
                    .window_key = offer.window_key,
                    .has_loopback = comm.needs_loopback(path)};
  if (path.is_stand_in() && path.posts) {
    order.devices = {&path.own_device()};
    if (!path.resources->device->context->is_gone())
      order.devices.push_back(path.resources->device);
  }
  comm.link().order({.path = offer.path,
                     .generation = offer.generation,
                     .prepares = true,
                     .what = std::move(order)});
}

void Recover::take_prepared(Comm& comm, PathMade made) {
  PathRepair& known = repair_of(comm, made.path);
  const bool is_sender = comm.role() == Role::kSend;
  const RepairEngine& engine = state_->engine;
  // The receiver has taken an offer of these queue pairs, and waits for them.
  const bool is_awaited = !is_sender && engine.awaits_queues(made.path, made.generation);
  const bool is_wanted = known.prepared && known.prepared->generation == made.generation &&
                         (is_sender ? engine.prepares(made.path, made.generation)
                                    : is_awaited || engine.may_prepare(made.path, made.generation));
  if (!is_wanted) {
    if (made.resources != nullptr) comm.link().discard(std::move(made.resources));
    return;
  }
  PreparedPath& prepared = *known.prepared;
  if (is_sender && made.resources == nullptr) {
    prepared.offer = made.offer;
    prepared.window_key = made.window_key;
    return send(comm, wire::OfferPath{.path = made.path,
                                      .generation = made.generation,
                                      .prepares = true,
                                      .report = {},
                                      .offer = std::move(made.offer),
                                      .window_key = made.window_key});
  }
  const bool is_ready = made.resources != nullptr;
  prepared.resources = std::move(made.resources);
  if (is_sender) return take(comm, move_event(made.path, RepairEvent::Kind::kPrepared));
  prepared.window_key = made.window_key;
  // The connection manager has the answer before the path is connected.
  if (!std::exchange(prepared.is_answered, true)) {
    prepared.answer = made.answer;
    send(comm, wire::AnswerPath{.path = made.path,
                                .generation = made.generation,
                                .prepares = true,
                                .answer = std::move(made.answer),
                                .window_key = made.window_key,
                                .line_keys = {}});
  }
  if (is_ready && is_awaited) take_awaited(comm, made.path, made.generation);
}

void Recover::adopt(PathRepair& known, PreparedPath ready) {
  known.answer = std::move(ready.answer);
  known.window_key = ready.window_key;
  known.made = std::move(ready.resources);
}

void Recover::take_awaited(Comm& comm, std::size_t path, std::uint32_t generation) {
  PathRepair& known = repair_of(comm, path);
  RepairEvent result = move_event(path, RepairEvent::Kind::kConnected);
  if (auto ready = use_prepared(comm, path, generation, std::nullopt)) {
    adopt(known, *std::move(ready));
  } else {
    result.kind = RepairEvent::Kind::kOfPath;
    result.of_path.kind = PathEvent::Kind::kQueuesFailed;
  }
  take(comm, result);
}

void Recover::take_not_prepared(Comm& comm, const PathNotMade& failure) {
  BL_INFO(kLogNet, "%s: path %d of %zu cannot be moved yet: %s",
          comm.name_for_log(failure.path).c_str(), failure.path + 1, comm.paths().size(),
          failure.why.c_str());
  if (comm.role() == Role::kSend) {
    if (state_->engine.prepares(failure.path, failure.generation))
      take(comm, move_event(failure.path, RepairEvent::Kind::kNotPrepared));
    return;
  }
  PathRepair& known = repair_of(comm, failure.path);
  const bool is_its = known.prepared && known.prepared->generation == failure.generation;
  if (is_its && state_->engine.awaits_queues(failure.path, failure.generation)) {
    known.prepared.reset();
    RepairEvent failed = move_event(failure.path, RepairEvent::Kind::kOfPath);
    failed.of_path.kind = PathEvent::Kind::kQueuesFailed;
    return take(comm, failed);
  }
  if (!state_->engine.may_prepare(failure.path, failure.generation)) return;
  send(comm, wire::PathNote{.path = failure.path,
                            .generation = failure.generation,
                            .news = wire::PathNews::kNotNow});
}

std::optional<PreparedPath> Recover::use_prepared(Comm& comm, std::size_t path,
                                                  std::uint32_t generation,
                                                  std::optional<std::uint32_t> peer_qpn) {
  PathRepair& known = repair_of(comm, path);
  if (!known.prepared) return std::nullopt;
  const bool is_ready = known.prepared->resources != nullptr &&
                        known.prepared->generation == generation &&
                        !known.prepared->resources->device->context->is_gone() &&
                        (!peer_qpn || known.prepared->peer_qpn == *peer_qpn);
  if (is_ready) return std::exchange(known.prepared, std::nullopt);
  drop_prepared(comm, path);
  return std::nullopt;
}

void Recover::drop_prepared(Comm& comm, std::size_t path) {
  PathRepair& known = repair_of(comm, path);
  if (!known.prepared) return;
  if (known.prepared->resources != nullptr) {
    comm.link().discard(std::move(known.prepared->resources));
  } else {
    comm.link().order({.path = static_cast<std::uint8_t>(path),
                       .generation = known.prepared->generation,
                       .prepares = true,
                       .what = DropPath{}});
  }
  known.prepared.reset();
}

}  // namespace beeline
