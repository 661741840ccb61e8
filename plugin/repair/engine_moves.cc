// SPDX-License-Identifier: Apache-2.0
//
// Paths whose next generation is prepared: those that move to another device while they carry data,
// and those that have failed and are connected by the connection manager.
#include <span>
#include <utility>

#include "plugin/repair/engine.h"

namespace beeline {

// All paths of a rail use the same device.
void RepairEngine::return_to_own(Step& step, const Path& path) noexcept {
  for (std::size_t i = 0; i < path_count_; ++i) {
    if (paths_[i].facts.rail != path.facts.rail || !is_up(i)) continue;
    if (is_sender_) {
      begin_move(step, paths_[i], false);
    } else {
      say(step, paths_[i], Command::kAskToMove);
    }
  }
}

void RepairEngine::begin_move(Step& step, Path& path, bool keeps_device) noexcept {
  const bool may_move = is_sender_ && path.status.state == PathState::kUp && !path.is_suspended &&
                        path.move == Move::kNone;
  if (may_move) prepare(step, path, times::kLongestMoveNs, keeps_device);
}

void RepairEngine::prepare(Step& step, Path& path, std::int64_t patience_ns,
                           bool keeps_device) noexcept {
  path.move = Move::kPreparing;
  path.move_until_ns = step.now.ns + patience_ns;
  const bool is_clear = path.status.state == PathState::kClear;
  step.commands.add({.kind = Command::kPrepare,
                     .path = number(path),
                     .generation = path.status.generation + 1,
                     .may_stand_in = is_clear && may_stand_in(path, step.now),
                     .turn = is_clear ? turn_of(path) : 0,
                     .keeps_device = keeps_device});
}

// The sender, when it is time for an attempt.
void RepairEngine::offer(Step& step, Path& path) noexcept {
  if (!path.facts.is_by_cm || path.move == Move::kReady)
    return take(step, path, PathEvent::Kind::kTimer);
  const bool may_prepare = path.status.state == PathState::kClear && path.status.is_port_well &&
                           path.held_until_ns == 0 && path.move == Move::kNone;
  if (!may_prepare) return;
  prepare(step, path, times::kLongestPrepareNs, false);
  ++path.tries;
}

void RepairEngine::take_prepared(Step& step, Path& path) noexcept {
  if (path.move != Move::kPreparing) return;
  path.move = Move::kReady;
  if (is_up(path)) return look_at_moves(step);
  note_hold(path);
  if (path.status.state == PathState::kClear) offer(step, path);
}

// Once all are ready: those of one rail, at either end, have to change their device together.
void RepairEngine::look_at_moves(Step& step) noexcept {
  const std::span paths = std::span(paths_).first(path_count_);
  for (Path& path : paths) {
    if (path.move != Move::kPreparing || step.now.ns < path.move_until_ns) continue;
    if (is_up(path)) return give_up_moves(step);
    give_up_move(step, path);
  }
  const auto is = [this](const Path& path, Move move) { return path.move == move && is_up(path); };
  for (const Path& path : paths) {
    if (is(path, Move::kPreparing)) return;
  }
  for (const Path& path : paths) {
    if (is(path, Move::kReady)) say(step, path, Command::kMove);
  }
}

void RepairEngine::give_up_move(Step& step, Path& path) noexcept {
  path.move = Move::kNone;
  note_hold(path);
  say(step, path, Command::kDropPrepared);
  if (path.status.state == PathState::kClear) path.attempts.wait(step.now.ns);
}

void RepairEngine::give_up_moves(Step& step) noexcept {
  for (Path& path : std::span(paths_).first(path_count_)) {
    if (path.move != Move::kNone && is_up(path)) give_up_move(step, path);
  }
}

}  // namespace beeline
