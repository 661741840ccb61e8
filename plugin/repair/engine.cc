// SPDX-License-Identifier: Apache-2.0
#include "plugin/repair/engine.h"

#include <span>
#include <utility>

namespace beeline {
namespace {

// How many attempts a sender makes with one device: the receiver may try several in the meantime.
constexpr std::uint32_t kTriesOfSender = 8;
// Generations in a row that failed within kBriefLifeNs.
constexpr std::uint32_t kMostBriefLives = 3;

// When an outage is logged again.
std::int64_t next_outage_log(std::int64_t since_ns, std::int64_t now_ns) noexcept {
  for (const std::int64_t after_ns : times::kOutageLogNs) {
    if (now_ns < since_ns + after_ns) return since_ns + after_ns;
  }
  return since_ns + ((now_ns - since_ns) / times::kOutageLogEveryNs + 1) * times::kOutageLogEveryNs;
}

}  // namespace

RepairEngine::RepairEngine(const Facts& facts) noexcept
    : is_sender_(facts.is_sender), path_count_(facts.paths), limits_(facts.limits) {
  BL_ASSERT(path_count_ - 1 < kMaxPaths, "a comm has one path at least, and not too many");
  for (std::size_t i = 0; i < path_count_; ++i) {
    paths_[i].facts = facts.path[i];
    paths_[i].status = facts.path[i].status;
    paths_[i].status.is_sender = is_sender_;
    note_hold(paths_[i]);
    paths_[i].is_missing = paths_[i].status.state == PathState::kClear;
    if (!paths_[i].is_missing) continue;
    paths_[i].attempts = BackOff(times::kMissingAttempts);
    paths_[i].attempts.wait(0);
  }
}

RepairCommands RepairEngine::on(const RepairEvent& event, const Moment& now) noexcept {
  BL_ASSERT(event.path < path_count_, "the path is one of the comm");
  Step step{.now = now, .commands = {}};
  Path& path = paths_[event.path];
  switch (event.kind) {
    case Event::kOfPath: take_of_path(step, path, event); break;
    case Event::kSilent:
      path.was_silent = true;
      take(step, path, PathEvent::Kind::kFailed);
      break;
    case Event::kDeviceGone:
      path.is_device_gone = true;
      path.is_own_gone = path.is_own_gone || !path.is_stand_in;
      take(step, path, PathEvent::Kind::kPortNotWell);
      break;
    case Event::kDeviceLeft:
      path.is_device_left = true;
      say(step, path, Command::kAskOwnPort);
      break;
    case Event::kOwnPort: take_own_port(step, path, event); break;
    case Event::kConnected:
      path.join_until_ns = now.ns + times::kLongestJoinNs;
      say(step, path, Command::kJoin);
      break;
    case Event::kJoined: take_joined(step, path, event.is_stand_in); break;
    case Event::kJoinLater:
      if (now.ns < path.join_until_ns) break;
      path.join_until_ns = times::kNever;
      say(step, path, Command::kDiscardMade);
      take(step, path, PathEvent::Kind::kQueuesFailed);
      break;
    case Event::kPrepared: take_prepared(step, path); break;
    case Event::kNotPrepared:
      if (path.move == Move::kNone) break;
      if (is_up(path)) {
        give_up_moves(step);
      } else {
        give_up_move(step, path);
      }
      break;
    case Event::kMoveAsked:
      begin_move(step, path, !path.is_stand_in || path.own_well_ns == 0);
      break;
    case Event::kLook: look(step, path, event); break;
    case Event::kLookAtComm: look_at_comm(step); break;
  }
  return step.commands;
}

// --- Questions ---

bool RepairEngine::is_up(const Path& path) const noexcept {
  const PathState state = path.status.state;
  return !path.is_suspended && (state == PathState::kUp || state == PathState::kAnswered);
}
bool RepairEngine::is_up(std::size_t path) const noexcept { return is_up(paths_[path]); }

bool RepairEngine::has_other_path(std::size_t path) const noexcept {
  for (std::size_t other = 0; other < path_count_; ++other) {
    if (other != path && is_up(other)) return true;
  }
  return false;
}

bool RepairEngine::awaits_queues(std::size_t path, std::uint32_t generation) const noexcept {
  const PathStatus& status = paths_[path].status;
  return status.generation == generation &&
         (status.state == PathState::kMaking || status.state == PathState::kProbing);
}

bool RepairEngine::has_usable_path() const noexcept {
  return std::any_of(paths_.begin(), paths_.begin() + path_count_, [](const Path& path) {
    return path.status.state == PathState::kUp && !path.is_suspended;
  });
}

bool RepairEngine::is_any_port_unwell() const noexcept {
  return std::any_of(paths_.begin(), paths_.begin() + path_count_,
                     [](const Path& path) { return !path.status.is_port_well; });
}

// A link that flaps gets its time, and a device that is gone does not.
bool RepairEngine::may_stand_in(const Path& path, const Moment& now) const noexcept {
  const std::int64_t patience = path.is_own_gone ? 0 : times::kStandInAfterNs;
  return now.has_standby && !has_usable_path() && outage_since_ns_ != 0 &&
         now.ns - outage_since_ns_ >= patience;
}

bool RepairEngine::needs_service() const noexcept {
  return std::any_of(paths_.begin(), paths_.begin() + path_count_, [](const Path& path) {
    return path.status.state == PathState::kFencing || path.status.state == PathState::kFenced ||
           path.join_until_ns != times::kNever || (path.is_device_gone && !path.is_device_left);
  });
}

std::int64_t RepairEngine::due_ns(const Moment& now) const noexcept {
  std::int64_t due = times::kNever;
  for (std::size_t i = 0; i < path_count_; ++i) {
    const Path& path = paths_[i];
    const bool is_draining = path.status.state == PathState::kFencing &&
                             (!path.status.is_unfenced || path.peer_fenced_ns != 0);
    due = std::min({due, path.attempts.due_ns(), path.repeats.due_ns(), path.look_ns,
                    path.finished_ns, path.join_until_ns,
                    path.held_until_ns == 0 ? times::kNever : path.held_until_ns,
                    path.move == Move::kPreparing ? path.move_until_ns : times::kNever,
                    is_draining ? now.ns + times::kDrainLookEveryNs : times::kNever});
  }
  if (devices_gone_ns_ != 0) due = std::min(due, devices_gone_ns_ + limits_.device_ns);
  if (mute_since_ns_ != 0) due = std::min(due, mute_since_ns_ + limits_.peer_ns);
  if (outage_since_ns_ == 0) return due;
  due = std::min(due, outage_log_due_ns_);
  if (limits_.give_up_ns != 0) due = std::min(due, outage_since_ns_ + limits_.give_up_ns);
  if (has_called_standbys_ || !now.has_standby) return due;
  return std::min(due, std::max(outage_since_ns_ + times::kStandInAfterNs,
                                now.ns + times::kStandInLookEveryNs));
}

bool RepairEngine::count_failure(std::size_t index, bool is_by_device,
                                 std::int64_t now_ns) noexcept {
  Path& path = paths_[index];
  const bool is_brief =
      is_by_device && path.up_ns != 0 && now_ns - path.up_ns < times::kBriefLifeNs;
  path.brief_lives = is_brief ? path.brief_lives + 1 : 0;
  return path.brief_lives >= kMostBriefLives && !has_other_path(index);
}

// --- The table ---

void RepairEngine::take(Step& step, Path& path, const PathEvent& event) noexcept {
  const PathState before = path.status.state;
  const PathTransition made = on_event(path.status, event);
  path.status = made.next;
  if (made.actions.has(PathAction::kMoveToError)) begin_fence(path, step.now.ns);
  made.actions.each([&](PathAction action) {
    act(step, path, action, made);
    return true;
  });
  if (path.status.state != before) begin_state(step, path);
}

void RepairEngine::act(Step& step, Path& path, PathAction action,
                       const PathTransition& made) noexcept {
  const bool is_detached = action == PathAction::kDetach;
  if (is_detached && made.actions.has(PathAction::kMoveToError)) return;  // a part of the fence
  RepairCommand command = {.path = number(path),
                           .action = action,
                           .generation = made.message_generation,
                           .has_peer_report = made.has_peer_report};
  if (is_detached) path.is_suspended = false;
  if (action == PathAction::kDestroyQueues) path.join_until_ns = times::kNever;
  if (action == PathAction::kDestroyQueues || action == PathAction::kMakeQueues)
    command.generation = path.status.generation;
  if (action == PathAction::kMakeQueues) {
    command.may_stand_in = may_stand_in(path, step.now);
    command.turn = turn_of(path);
    ++path.tries;
  }
  step.commands.add(command);
}

std::uint32_t RepairEngine::turn_of(const Path& path) noexcept {
  return path.tries / kTriesOfSender;
}

void RepairEngine::begin_fence(Path& path, std::int64_t now_ns) noexcept {
  path.is_suspended = false;
  path.failed_ns = now_ns;
  path.in_error_ns = 0;
  path.is_fence_late = false;
  path.peer_fenced_ns = path.peer_refused_ns = 0;
  path.tries = 0;
  // A failure while a path is prepared leaves nothing to move.
  if (path.move == Move::kReady) return path.attempts.reset();
  path.move = Move::kNone;
  hold_if_often(path, now_ns);
  if (now_ns - path.up_ns <= times::kLongLifeNs) return;
  path.attempts.reset();
  if (path.is_stand_in) return;
  path.well_for_ns = times::kWellForNs;
  path.has_gone_back = false;
}

void RepairEngine::hold_if_often(Path& path, std::int64_t now_ns) noexcept {
  const bool is_often = path.up_ns != 0 && now_ns - path.up_ns < times::kSteadyNs;
  path.often = is_often ? path.often + 1 : 0;
  std::int64_t hold_ns = times::kHolds.first_ns;
  for (std::uint32_t i = 2; i < std::min(path.often, 16U); ++i)
    hold_ns = times::kHolds.after(hold_ns);
  path.held_until_ns = path.often >= 2 ? now_ns + hold_ns : 0;
}

void RepairEngine::release(Path& path, std::int64_t now_ns) noexcept {
  if (std::exchange(path.held_until_ns, 0) == 0) return;
  note_hold(path);
  if (path.status.state == PathState::kClear) path.attempts.set_due(now_ns);
}

// Whether the sender must not offer the path yet.
void RepairEngine::note_hold(Path& path) noexcept {
  path.status.is_held =
      path.held_until_ns != 0 || (path.facts.is_by_cm && path.move != Move::kReady);
}

void RepairEngine::begin_state(Step& step, Path& path) noexcept {
  path.attempts.stop();
  path.repeats.stop();
  if (path.status.state == PathState::kMaking) path.move = Move::kNone;
  note_hold(path);
  switch (path.status.state) {
    case PathState::kUp:
      if (path.is_missing) path.attempts = BackOff(times::kAttempts);
      path.up_ns = step.now.ns;
      step.commands.add({.kind = Command::kSayUp,
                         .path = number(path),
                         .was_silent = std::exchange(path.was_silent, false),
                         .was_missing = std::exchange(path.is_missing, false)});
      return;
    case PathState::kClear:
      // If the device is gone, the path has to leave it first.
      if (path.is_device_gone && !path.is_device_left) return;
      return path.attempts.wait(step.now.ns);
    case PathState::kFencing:
    case PathState::kMaking:
    case PathState::kProbing: return;
    case PathState::kFenced:
    case PathState::kOffered:
    case PathState::kAnswered: break;
  }
  path.repeats.reset();
  path.repeats.wait(step.now.ns);
}

void RepairEngine::take_of_path(Step& step, Path& path, const RepairEvent& event) noexcept {
  const PathEvent::Kind kind = event.of_path.kind;
  const std::int64_t now_ns = step.now.ns;
  if (event.of_path.is_message()) mute_since_ns_ = 0;
  take(step, path, event.of_path);
  const bool may_prepare = kind == PathEvent::Kind::kWell && path.facts.is_by_cm &&
                           path.status.state == PathState::kClear && path.move == Move::kNone;
  if (may_prepare) path.attempts.set_due(now_ns);
  if (kind == PathEvent::Kind::kFenceRefused && path.status.state == PathState::kFencing) {
    path.repeats.reset();
    path.repeats.wait(now_ns);
  }
  // The message may be a repetition.
  if (event.has_finished && path.finished_ns == times::kNever)
    path.finished_ns = now_ns + times::kLongestArrivalNs;
  const bool neither_fences = kind == PathEvent::Kind::kPeerCannotFence &&
                              path.status.is_unfenced && !path.is_fence_late &&
                              event.of_path.generation == path.status.generation;
  if (!neither_fences) return;
  // A device that is gone takes nothing, so its end needs no fence at the other.
  if (path.is_device_gone) {
    if (path.peer_fenced_ns == 0) path.peer_fenced_ns = now_ns;
  } else if (path.peer_refused_ns == 0) {
    path.peer_refused_ns = now_ns;
  } else if (now_ns - path.peer_refused_ns >= times::kLongestNewsNs) {  // the peer repeats it
    say(step, path, Command::kEndNeitherFences);
  }
}

// --- Devices ---

void RepairEngine::take_own_port(Step& step, Path& path, const RepairEvent& event) noexcept {
  const std::int64_t now_ns = step.now.ns;
  path.is_own_gone = event.is_gone;
  if (!is_up(path)) {
    const bool is_usable = !(path.is_device_gone && !path.is_device_left) &&
                           (event.is_active || may_stand_in(path, step.now));
    take(step, path, is_usable ? PathEvent::Kind::kPortWell : PathEvent::Kind::kPortNotWell);
    const bool is_clear = path.status.state == PathState::kClear;
    if (!is_usable || !is_clear) return;
    if (path.is_missing) path.attempts.reset();
    path.attempts.set_due(now_ns);
  } else if (!path.is_stand_in || !event.is_active) {
    path.own_well_ns = 0;
  } else if (path.own_well_ns == 0) {
    path.own_well_ns = now_ns;
    if (path.has_gone_back)
      path.well_for_ns = std::min(2 * path.well_for_ns, times::kLongestWellForNs);
    path.has_gone_back = false;
  } else if (now_ns - path.own_well_ns >= path.well_for_ns) {
    path.has_gone_back = true;
    path.own_well_ns = 0;  // if that is in vain, the own device has to be well for longer
    return_to_own(step, path);
  }
}

void RepairEngine::take_joined(Step& step, Path& path, bool is_stand_in) noexcept {
  path.join_until_ns = times::kNever;
  path.is_device_gone = path.is_device_left = false;
  path.is_stand_in = is_stand_in;
  take(step, path, is_sender_ ? PathEvent::Kind::kProbed : PathEvent::Kind::kQueuesMade);
}

// A device that stands in may be far from the GPU, and has its own connections to serve, so it does
// not carry data beside one of the comm's own. If both ends have devices that stand in, for
// different paths, only one of them may leave: the sender is faster. Neither leaves before the own
// device has worked for a while: its link may flap.
void RepairEngine::look_at_stand_in(Step& step, Path& path) noexcept {
  const std::int64_t now_ns = step.now.ns;
  if (!path.is_stand_in || !is_up(path)) {
    path.look_ns = times::kNever;
    path.own_well_ns = path.beside_own_ns = 0;
    return;
  }
  if (path.look_ns != times::kNever && now_ns < path.look_ns) return;
  path.look_ns = now_ns + times::kOwnLookEveryNs;
  const bool works_by_own =
      std::any_of(paths_.begin(), paths_.begin() + path_count_,
                  [this](const Path& other) { return is_up(other) && !other.is_stand_in; });
  if (!works_by_own) {
    path.beside_own_ns = 0;
  } else if (path.beside_own_ns == 0) {
    path.beside_own_ns = now_ns;
  } else if (now_ns - path.beside_own_ns >=
             (is_sender_ ? times::kSenderBesideOwnNs : times::kReceiverBesideOwnNs)) {
    return leave_stand_in(step, path);
  }
  say(step, path, Command::kAskOwnPort);
}

void RepairEngine::leave_stand_in(Step& step, const Path& path) const noexcept {
  for (std::size_t i = 0; i < path_count_; ++i) {
    if (paths_[i].facts.rail == path.facts.rail && is_up(i))
      say(step, paths_[i], Command::kBesideOwn);
  }
}

// --- Time ---

bool RepairEngine::is_drained(Path& path, bool is_fenced, std::int64_t now_ns) const noexcept {
  if (is_fenced || (path.in_error_ns != 0 && now_ns - path.in_error_ns >= times::kLongestDrainNs))
    return true;
  if (!path.status.is_unfenced) return false;
  if (path.status.has_peer_report && path.peer_fenced_ns == 0) path.peer_fenced_ns = now_ns;
  return path.peer_fenced_ns != 0 && now_ns - path.peer_fenced_ns >= times::kLongestWayNs;
}

// A driver that does not answer is taken for one that refuses, until it has answered.
void RepairEngine::look_at_fence(Step& step, Path& path, const RepairEvent& event) noexcept {
  const std::int64_t now_ns = step.now.ns;
  if (event.is_in_error && path.in_error_ns == 0) path.in_error_ns = now_ns;
  const bool is_open = !event.is_in_error && !event.is_refused;
  const bool is_late = is_open && now_ns - path.failed_ns >= times::kLongestFenceNs;
  if ((event.is_refused || is_late) && !path.status.is_unfenced) {
    take_of_path(step, path,
                 {.kind = RepairEvent::Kind::kOfPath,
                  .path = number(path),
                  .of_path = {.kind = PathEvent::Kind::kFenceRefused}});
  }
  path.is_fence_late = is_late;
  if (is_drained(path, event.is_fenced, now_ns)) take(step, path, PathEvent::Kind::kDrained);
}

void RepairEngine::look(Step& step, Path& path, const RepairEvent& event) noexcept {
  if (path.status.state == PathState::kFencing) look_at_fence(step, path, event);
  if (path.is_device_gone && path.status.state == PathState::kClear && !path.is_device_left)
    say(step, path, Command::kLeaveDevice);
  look_at_stand_in(step, path);
  look_at_timers(step, path);
}

void RepairEngine::look_at_timers(Step& step, Path& path) noexcept {
  const std::int64_t now_ns = step.now.ns;
  if (now_ns >= path.finished_ns) {
    path.finished_ns = times::kNever;
    say(step, path, Command::kCheckFinished);
  }
  if (path.join_until_ns != times::kNever) say(step, path, Command::kJoin);
  if (path.held_until_ns != 0 && now_ns >= path.held_until_ns) release(path, now_ns);
  if (path.attempts.is_due(now_ns)) {
    path.attempts.stop();
    const bool was_well = path.status.is_port_well;
    if (!was_well) say(step, path, Command::kAskOwnPort);
    if (is_sender_) offer(step, path);
    // A receiver whose port is well has nothing to do: the next offer is the sender's.
    if (!was_well && path.status.state == PathState::kClear) path.attempts.wait(now_ns);
  }
  if (path.repeats.is_due(now_ns)) {
    path.repeats.wait(now_ns);
    take(step, path, PathEvent::Kind::kTimer);
  }
}

// While the channel is away, others decide how long the peer is waited for.
void RepairEngine::look_at_peer(Step& step) noexcept {
  const auto waiting = std::find_if(paths_.begin(), paths_.begin() + path_count_, waits_for_peer);
  const bool is_asked = waiting != paths_.begin() + path_count_ && step.now.has_channel;
  if (!is_asked || limits_.peer_ns == 0) {
    mute_since_ns_ = 0;
  } else if (mute_since_ns_ == 0) {
    mute_since_ns_ = step.now.ns;
  } else if (step.now.ns - mute_since_ns_ >= limits_.peer_ns) {
    limits_.peer_ns = mute_since_ns_ = 0;
    say(step, *waiting, Command::kEndMute);
  }
}

void RepairEngine::look_at_devices(Step& step) noexcept {
  const bool are_gone =
      std::all_of(paths_.begin(), paths_.begin() + path_count_,
                  [](const Path& path) { return path.is_device_gone && path.is_own_gone; });
  if (!are_gone || step.now.has_standby) {
    devices_gone_ns_ = 0;
  } else if (devices_gone_ns_ == 0) {
    devices_gone_ns_ = step.now.ns;
  } else if (step.now.ns - devices_gone_ns_ >= limits_.device_ns) {
    step.commands.add({.kind = Command::kEndNoDevice});
  }
}

void RepairEngine::look_at_comm(Step& step) noexcept {
  const std::int64_t now_ns = step.now.ns;
  look_at_peer(step);
  look_at_devices(step);
  look_at_moves(step);
  if (has_usable_path()) {
    outage_since_ns_ = 0;
    has_called_standbys_ = false;
    return;
  }
  if (outage_since_ns_ == 0) {
    outage_since_ns_ = now_ns;
    outage_log_due_ns_ = now_ns + times::kOutageLogNs.front();
  }
  for (Path& path : std::span(paths_).first(path_count_)) release(path, now_ns);
  if (is_outage_over_limit(now_ns)) {
    limits_.give_up_ns = 0;
    return step.commands.add({.kind = Command::kEndNoPath});
  }
  if (now_ns >= outage_log_due_ns_) {
    outage_log_due_ns_ = next_outage_log(outage_since_ns_, now_ns);
    step.commands.add({.kind = Command::kSayWaiting});
  }
  if (!has_called_standbys_) call_standbys(step);
}

// From now on paths whose own device does not work can be made by others.
void RepairEngine::call_standbys(Step& step) noexcept {
  for (Path& path : std::span(paths_).first(path_count_)) {
    const bool is_usable =
        path.status.state == PathState::kClear && !(path.is_device_gone && !path.is_device_left);
    if (!is_usable || !may_stand_in(path, step.now)) continue;
    has_called_standbys_ = true;
    take(step, path, PathEvent::Kind::kPortWell);
    if (path.status.state == PathState::kClear) path.attempts.set_due(step.now.ns);
  }
}

}  // namespace beeline
