// SPDX-License-Identifier: Apache-2.0
//
// Decides what one end of a comm does about its paths: what follows from an event, and when to look
// again. An engine has no clock, log or verbs and knows no other object: equal events at equal
// times give equal commands. plugin/recovery feeds it, and carries its commands out.
//
// A table says what follows for one path (path_machine.h). The engine adds the timers, the
// relations between the paths of a comm, devices that are gone or stand in, and the wait without
// any path.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/check/assert.h"
#include "plugin/repair/path_machine.h"
#include "plugin/repair/times.h"

namespace beeline {

// When the next of several attempts is due.
class BackOff {
 public:
  explicit constexpr BackOff(const times::Delays& delays) noexcept
      : delays_(delays), delay_ns_(delays.first_ns) {}

  bool is_due(std::int64_t now_ns) const noexcept { return now_ns >= due_ns_; }
  std::int64_t due_ns() const noexcept { return due_ns_; }
  void set_due(std::int64_t when_ns) noexcept { due_ns_ = when_ns; }
  void stop() noexcept { due_ns_ = times::kNever; }
  // The next attempt is due after the current delay.
  void wait(std::int64_t now_ns) noexcept {
    due_ns_ = now_ns + delay_ns_;
    delay_ns_ = delays_.after(delay_ns_);
  }
  void reset() noexcept { delay_ns_ = delays_.first_ns; }

 private:
  times::Delays delays_;
  std::int64_t delay_ns_;
  std::int64_t due_ns_ = times::kNever;
};

struct RepairEvent {
  enum class Kind : std::uint8_t {
    kOfPath,       // `of_path`
    kSilent,       // the path is: nothing completes on it and its device says nothing
    kDeviceGone,   // the device that the path uses
    kDeviceLeft,   // after kLeaveDevice: nothing waits for that device any more
    kOwnPort,      // of the path's own device: `is_active`, `is_gone`
    kConnected,    // the new queue pair is there and reaches the peer
    kJoined,       // after kJoin: it is in use; its device `is_stand_in` or not
    kJoinLater,    // after kJoin: something still uses the former one
    kPrepared,     // after kPrepare: the queue pairs at both ends are connected
    kNotPrepared,  // or they could not be made
    kMoveAsked,    // the receiver asks the sender to move the path
    kLook,         // at one path; in kFencing, `is_in_error` says whether the device discards what
                   // comes, `is_refused` that it will not, and `is_fenced` whether all completions
                   // are counted
    kLookAtComm,
  };

  Kind kind = Kind::kLook;
  std::uint8_t path = 0;
  PathEvent of_path = {};
  bool has_finished = false;  // a FENCED that says for which lines nothing more will come
  bool is_in_error = false;
  bool is_refused = false;
  bool is_fenced = false;
  bool is_active = false;
  bool is_gone = false;
  bool is_stand_in = false;
};

struct RepairCommand {
  enum class Kind : std::uint8_t {
    kAct,            // `action`, with a message's `generation` and `has_peer_report`
    kAskOwnPort,     // kOwnPort answers
    kLeaveDevice,    // kDeviceLeft answers, or nothing if that is not possible now
    kJoin,           // kJoined or kJoinLater answers
    kDiscardMade,    // the queue pair that could not be joined
    kCheckFinished,  // the time for the lines of has_finished is over: if one is missing, it is
                     // lost
    kBesideOwn,      // another path works by its own device: this one, by a stand-in, is left
    kPrepare,        // the queue pairs of the next generation, while the path is in use, or
                     // before it is offered; kPrepared or kNotPrepared follows
    kDropPrepared,   // they are not needed any more
    kMove,           // the path is left, and goes on with them
    kAskToMove,      // tells the sender
    kSayUp,          // `was_silent`, `was_missing`
    kSayWaiting,
    kEndNoPath,    // no path has worked for too long
    kEndNoDevice,  // all devices have been gone for too long
    kEndMute,      // the peer says nothing about a path that waits for it, on a channel that is
                   // there
    kEndNeitherFences,  // no device moves the queue pair of a path to ERROR
  };

  Kind kind = Kind::kAct;
  std::uint8_t path = 0;
  PathAction action = PathAction::kDetach;
  std::uint32_t generation = 0;
  bool has_peer_report = false;
  bool was_silent = false;
  bool was_missing = false;
  // Of kMakeQueues and kPrepare.
  bool may_stand_in = false;  // other devices than the path's own may be used
  std::uint32_t turn = 0;     // at the sender: where in the list of devices to begin
  bool keeps_device = false;  // of kPrepare: by the device in use

  bool operator==(const RepairCommand&) const = default;
};

class RepairCommands {
 public:
  void add(const RepairCommand& command) noexcept {
    BL_ASSERT(count_ < commands_.size(), "an event causes few commands");
    commands_[count_++] = command;
  }
  const RepairCommand* begin() const noexcept { return commands_.data(); }
  const RepairCommand* end() const noexcept { return commands_.data() + count_; }

 private:
  std::array<RepairCommand, 16> commands_{};
  std::size_t count_ = 0;
};

struct RepairLimits {
  std::int64_t give_up_ns = 0;  // how long the comm may have no path that works; 0: for ever
  std::int64_t device_ns = 0;   // how long all devices of the comm may be gone
  std::int64_t peer_ns = 0;  // how long the peer may say nothing while a path waits for it; 0: the
                             // same
};

class RepairEngine {
 public:
  static constexpr std::size_t kMaxPaths = 8;

  struct PathFacts {
    std::uint8_t rail = 0;  // paths of one rail use the same device
    // The connection manager connects it, which needs the peer's answer before. So what is offered
    // has to be prepared first.
    bool is_by_cm = false;
    PathStatus status = {};  // in kClear: the path was missing when the comm was made
  };
  struct Facts {
    bool is_sender = false;
    RepairLimits limits = {};
    std::size_t paths = 0;
    std::array<PathFacts, kMaxPaths> path = {};
  };
  // When an event happens, and what may have changed since the last one.
  struct Moment {
    std::int64_t ns = 0;
    bool has_standby = false;  // another device of this host may stand in
    bool has_channel = true;   // the control channel to the peer is there
  };

  explicit RepairEngine(const Facts& facts) noexcept;

  RepairCommands on(const RepairEvent& event, const Moment& now) noexcept;
  // A path that is up has failed while another event's commands are carried out. It carries nothing
  // any more; its own event follows.
  void suspend(std::size_t path) noexcept { paths_[path].is_suspended = true; }
  // A generation of the path has failed, by this end's device or not. True: so would the next.
  bool count_failure(std::size_t path, bool is_by_device, std::int64_t now_ns) noexcept;

  const PathStatus& status(std::size_t path) const noexcept { return paths_[path].status; }
  // The state of the path. If it has failed and its event is still to come, it is being fenced.
  PathState state(std::size_t path) const noexcept {
    return paths_[path].is_suspended ? PathState::kFencing : paths_[path].status.state;
  }
  // The path carries data, or a receiver's data counts.
  bool is_up(std::size_t path) const noexcept;
  bool has_other_path(std::size_t path) const noexcept;  // that is up
  // Whether a result of this generation is still wanted.
  bool awaits_queues(std::size_t path, std::uint32_t generation) const noexcept;
  // Whether the generation is a next one of the path, which may be prepared. The sender may have
  // offered others in vain.
  bool may_prepare(std::size_t path, std::uint32_t generation) const noexcept {
    const PathStatus& now = paths_[path].status;
    return (is_up(path) || now.state == PathState::kClear) && is_older(now.generation, generation);
  }
  bool prepares(std::size_t path, std::uint32_t generation) const noexcept {
    return paths_[path].move == Move::kPreparing && may_prepare(path, generation);
  }
  // The device that the path uses, or has used last.
  bool is_device_gone(std::size_t path) const noexcept { return paths_[path].is_device_gone; }
  std::int64_t failed_ns(std::size_t path) const noexcept { return paths_[path].failed_ns; }
  // For how long after its failure the path is not made anew, as it fails often. 0: at once.
  std::int64_t held_ns(std::size_t path) const noexcept {
    const Path& held = paths_[path];
    return held.held_until_ns == 0 ? 0 : held.held_until_ns - held.failed_ns;
  }
  std::uint32_t tries(std::size_t path) const noexcept { return paths_[path].tries; }
  bool is_any_port_unwell() const noexcept;
  std::int64_t outage_ns(std::int64_t now_ns) const noexcept { return now_ns - outage_since_ns_; }

  // Whether the comm's calls have to go on looking.
  bool needs_service() const noexcept;
  std::int64_t due_ns(const Moment& now) const noexcept;

 private:
  using Command = RepairCommand::Kind;
  using Event = RepairEvent::Kind;
  // How far a path in use is on its way to other queue pairs.
  enum class Move : std::uint8_t { kNone, kPreparing, kReady };
  struct Path {
    // --- What is true of the path ---
    PathFacts facts;
    PathStatus status;
    // It has failed, and the event that says so has not been handled yet.
    bool is_suspended = false;
    // It failed because nothing completed on it, and no device said why.
    bool was_silent = false;
    // It has not been up since the comm was made.
    bool is_missing = false;

    // --- Its device ---
    // The device in use is not the path's own.
    bool is_stand_in = false;
    // The device in use is gone. Another one is needed to make the path anew.
    bool is_device_gone = false;
    // Nothing waits for the device in use any more.
    bool is_device_left = false;
    // The path's own device is gone.
    bool is_own_gone = false;
    // The path has returned to its own device, after another one had stood in.
    bool has_gone_back = false;
    Move move = Move::kNone;
    // When what was prepared is given up.
    std::int64_t move_until_ns = times::kNever;
    // While another device stands in: since when the own one is well, and since when another path
    // of the comm works by its own device. 0: it is not so.
    std::int64_t own_well_ns = 0;
    std::int64_t beside_own_ns = 0;
    // For how long the own device has to be well before it is used again.
    std::int64_t well_for_ns = times::kWellForNs;
    // When to ask again whether the own device is well.
    std::int64_t look_ns = times::kNever;

    // --- While it is fenced ---
    std::int64_t failed_ns = 0;
    // Since when the queue pair is in ERROR. 0: it is not.
    std::int64_t in_error_ns = 0;
    // This end's device has not moved the queue pair to ERROR in time. It counts as one that
    // refuses, and may do it all the same.
    bool is_fence_late = false;
    // If this end's device refuses: since when the peer is known to have fenced the path, and since
    // when the peer's device is known to refuse as well. 0: it is not so.
    std::int64_t peer_fenced_ns = 0;
    std::int64_t peer_refused_ns = 0;
    // When kCheckFinished is due.
    std::int64_t finished_ns = times::kNever;

    // --- While it is made anew ---
    // How often that was tried since the path failed.
    std::uint32_t tries = 0;
    // How many generations in a row failed soon after they were made, by this end's device.
    std::uint32_t brief_lives = 0;
    // When the path was last made anew. 0: never.
    std::int64_t up_ns = 0;
    // How many failures in a row came within kSteadyNs after that.
    std::uint32_t often = 0;
    // Until when it is not offered for that reason. 0: it may be.
    std::int64_t held_until_ns = 0;
    // Until when a new queue pair waits to be joined.
    std::int64_t join_until_ns = times::kNever;
    // In kClear: when the sender offers a new generation, and when both ends look at a port that
    // was not well.
    BackOff attempts{times::kAttempts};
    // In a state that waits for the peer: when the last message is sent again.
    BackOff repeats{times::kRepeats};
  };
  // One event that is being handled.
  struct Step {
    const Moment& now;
    RepairCommands commands;
  };

  std::uint8_t number(const Path& path) const noexcept {
    return static_cast<std::uint8_t>(&path - paths_.data());
  }
  void say(Step& step, const Path& path, RepairCommand::Kind kind) const noexcept {
    step.commands.add({.kind = kind, .path = number(path)});
  }
  void take(Step& step, Path& path, const PathEvent& event) noexcept;
  void take(Step& step, Path& path, PathEvent::Kind kind) noexcept {
    take(step, path, PathEvent{.kind = kind});
  }
  void act(Step& step, Path& path, PathAction action, const PathTransition& made) noexcept;
  static std::uint32_t turn_of(const Path& path) noexcept;
  void begin_fence(Path& path, std::int64_t now_ns) noexcept;
  static void hold_if_often(Path& path, std::int64_t now_ns) noexcept;
  static void release(Path& path, std::int64_t now_ns) noexcept;
  static void note_hold(Path& path) noexcept;
  void begin_state(Step& step, Path& path) noexcept;
  void take_of_path(Step& step, Path& path, const RepairEvent& event) noexcept;
  void take_own_port(Step& step, Path& path, const RepairEvent& event) noexcept;
  void take_joined(Step& step, Path& path, bool is_stand_in) noexcept;
  void look(Step& step, Path& path, const RepairEvent& event) noexcept;
  void look_at_fence(Step& step, Path& path, const RepairEvent& event) noexcept;
  void look_at_timers(Step& step, Path& path) noexcept;
  void look_at_stand_in(Step& step, Path& path) noexcept;
  void leave_stand_in(Step& step, const Path& path) const noexcept;
  void return_to_own(Step& step, const Path& path) noexcept;
  void begin_move(Step& step, Path& path, bool keeps_device) noexcept;
  void prepare(Step& step, Path& path, std::int64_t patience_ns, bool keeps_device) noexcept;
  void offer(Step& step, Path& path) noexcept;
  void take_prepared(Step& step, Path& path) noexcept;
  void look_at_moves(Step& step) noexcept;
  void give_up_move(Step& step, Path& path) noexcept;
  void give_up_moves(Step& step) noexcept;
  void look_at_comm(Step& step) noexcept;
  void look_at_peer(Step& step) noexcept;
  void look_at_devices(Step& step) noexcept;
  void call_standbys(Step& step) noexcept;

  bool is_up(const Path& path) const noexcept;
  bool has_usable_path() const noexcept;
  // Whether the path can only go on when the peer says something.
  static bool waits_for_peer(const Path& path) noexcept {
    const PathStatus& status = path.status;
    return status.state == PathState::kFenced ||
           (status.state == PathState::kFencing && status.is_unfenced && !status.has_peer_report);
  }
  bool is_drained(Path& path, bool is_fenced, std::int64_t now_ns) const noexcept;
  bool may_stand_in(const Path& path, const Moment& now) const noexcept;
  bool is_outage_over_limit(std::int64_t now_ns) const noexcept {
    return limits_.give_up_ns != 0 && now_ns - outage_since_ns_ >= limits_.give_up_ns;
  }

  const bool is_sender_;
  const std::size_t path_count_;
  RepairLimits limits_;               // 0 once one was reached
  std::int64_t devices_gone_ns_ = 0;  // since when all are, and none stands in
  std::int64_t mute_since_ns_ = 0;    // the peer has said nothing, though a path waits for it
  std::int64_t outage_since_ns_ = 0;  // 0: some path works
  std::int64_t outage_log_due_ns_ = 0;
  bool has_called_standbys_ = false;  // in this outage
  std::array<Path, kMaxPaths> paths_{};
};

}  // namespace beeline
