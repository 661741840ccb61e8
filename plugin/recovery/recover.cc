// SPDX-License-Identifier: Apache-2.0
//
// Makes events for the engine of failures that the transfer floor notices, messages of the peer,
// results of the control thread, and news of ports.
#include "plugin/recovery/recover.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/check/assert.h"
#include "plugin/device/port_report.h"
#include "plugin/transfer/comm.h"
#include "plugin/transfer/path_failure.h"
#include "plugin/verbs/text.h"
#include "plugin/wire/limits.h"

namespace beeline {
namespace {

static_assert(RepairEngine::kMaxPaths == wire::kMaxPaths);

bool is_from_other_role(const PathMessage& message, Role ours) noexcept {
  const auto* const fenced = std::get_if<wire::Fenced>(&message);
  if (fenced == nullptr) return true;  // the table sees to that
  return std::holds_alternative<wire::SenderReport>(fenced->report) == (ours == Role::kReceive);
}

PathEvent event_of(const wire::Fenced& message) noexcept {
  return {.kind = PathEvent::Kind::kPeerFenced,
          .generation = message.generation,
          .peer_has_report = message.has_peer_report};
}
PathEvent event_of(const wire::OfferPath& message) noexcept {
  return {.kind = PathEvent::Kind::kOffer, .generation = message.generation};
}
PathEvent event_of(const wire::AnswerPath& message) noexcept {
  return {.kind = PathEvent::Kind::kAnswer, .generation = message.generation};
}
PathEvent event_of(const wire::PathNote& message) noexcept {
  PathEvent event = {.kind = PathEvent::Kind::kNotNow, .generation = message.generation};
  switch (message.news) {
    case wire::PathNews::kNotNow: break;
    case wire::PathNews::kWell: event.kind = PathEvent::Kind::kWell; break;
    case wire::PathNews::kReady: event.kind = PathEvent::Kind::kReady; break;
    case wire::PathNews::kCannotFence: event.kind = PathEvent::Kind::kPeerCannotFence; break;
    case wire::PathNews::kWaits:
      break;  // no event of a path
    // It gets here if a sender has sent it, which the table refuses, as it does this.
    case wire::PathNews::kMove: event.kind = PathEvent::Kind::kWell; break;
  }
  return event;
}

RepairEvent of_path(std::size_t path, const PathEvent& event) noexcept {
  return {.kind = RepairEvent::Kind::kOfPath,
          .path = static_cast<std::uint8_t>(path),
          .of_path = event};
}
RepairEvent of_path(std::size_t path, PathEvent::Kind kind) noexcept {
  return of_path(path, PathEvent{.kind = kind});
}
// A path that is missing is made as the others were, since both ends have the same settings for
// all.
bool is_by_cm(const Comm& comm, const PathResources& resources) noexcept {
  if (!resources.is_missing()) return static_cast<bool>(resources.queues.cm);
  return resources.device->transport == Transport::kIwarp ||
         std::ranges::any_of(comm.paths(), [](const Path& path) {
           return static_cast<bool>(path.resources->queues.cm);
         });
}
RepairEvent event_at(std::size_t path, RepairEvent::Kind kind) noexcept {
  return {.kind = kind, .path = static_cast<std::uint8_t>(path)};
}

}  // namespace

// --- What the transfer floor reports ---

void Recover::on_failed_request(Comm& comm, const Path& path, const ibv_wc& failed,
                                const char* doing) {
  if (!may_mend(comm, path, failed)) return suspect(comm, path, failed, doing);
  fail_path(comm, path.index,
            std::string("a ") + doing + " failed: " + verbs::wc_status_text(failed.status));
}

bool Recover::may_mend(Comm& comm, const Path& path, const ibv_wc& failed) {
  // Requests that are flushed after a fault of a program have the same cause.
  if (ending_.suspects(path.index) || !can_recover(comm)) return false;
  const std::int64_t now = now_ns();
  RepairEngine& engine = state(comm).engine;
  if (is_path_failure(failed.status))
    return !engine.count_failure(path.index, failed.status == IBV_WC_LOC_QP_OP_ERR, now);
  // One rail may have its own fault. A fault of a program follows the message to any other.
  const bool is_of_message = ending_.follows_message(path.index, comm.line_of(failed.wr_id), now);
  return engine.has_other_path(path.index) && !is_of_message;
}

Errc Recover::on_refused(Comm& comm, const Path& path, int rc, const char* doing) {
  const std::string why = describe({Errc::kSystem, rc, "the device refused it"});
  if (!can_recover(comm)) return end_on(comm, path, doing, why);
  fail_path(comm, path.index, std::string("cannot ") + doing + ": " + why);
  return Errc::kOk;
}

void Recover::on_unreadable_queue(Comm& comm, const Path& path) {
  if (!path.posts) return;  // nothing of it counts any more
  const char* const why = "its completion queue cannot be read";
  if (can_recover(comm)) return fail_path(comm, path.index, why);
  (void)end_on(comm, path, "go on", why);
}

Status Recover::on_alarm(Comm& comm) {
  advance(comm);
  return check_end(comm);
}

void Recover::on_waiting(Comm& comm, std::int64_t now_ns) {
  if (!comm.link().exchanges_reports() || comm.link().has_ended()) return;
  if (silence_ == nullptr) silence_ = std::make_unique<SilenceWatch>();
  if (!silence_->is_due(now_ns)) return;
  if (comm.has_in_band_news()) advance(comm);
  ask_for_line(comm, now_ns);
  std::array<PathSigns, wire::kMaxPaths> signs;
  for (Path& path : comm.paths()) {
    if (path.silence == nullptr) path.silence = std::make_unique<PathSilence>();
    signs[path.index] = comm.signs_of(path);
  }
  const SilenceWatch::Findings found = silence_->look({signs.data(), comm.paths().size()}, now_ns);
  if (found.must_ask) (void)comm.probe_paths();  // what the device refuses is reported by itself
  for (std::size_t path = 0; path < comm.paths().size(); ++path) {
    if ((found.silent >> path & 1) == 0 || !comm.is_up(path) || !can_recover(comm)) continue;
    const std::string cause =
        ending_.suspects(path)
            ? std::string("a ") + suspected_->request.doing +
                  " failed: " + verbs::wc_status_text(suspected_->request.status)
            : "nothing completes on it and its device reports no error, while another path works";
    fail_path(comm, path, cause, event_at(path, RepairEvent::Kind::kSilent));
  }
}

Status Recover::on_quiet(Comm& comm, StallWatch::Verdict verdict) {
  if (!comm.has_usable_path()) return {};  // nothing can move until a path is made anew
  ask_for_line(comm, now_ns());
  if (verdict != StallWatch::Verdict::kStalled || !comm.link().exchanges_reports()) {
    return end_if_stalled(comm, verdict);
  }
  // Their devices should have reported an error by now. Soft RoCE can retry for ever.
  for (std::size_t path = 0; path < comm.paths().size(); ++path) {
    if (!comm.is_up(path) || !comm.owes_answer(comm.paths()[path])) continue;
    if (!can_recover(comm)) return end_if_stalled(comm, verdict);
    fail_path(
        comm, path,
        "nothing has completed within BEELINE_STALL_TIMEOUT, and its device reports no error");
  }
  return {};
}

// --- A line, or its message, was lost by a device that has acknowledged it ---

// Nothing fails then, and nothing moves. The wait is usually the application's.
void Recover::ask_for_line(Comm& comm, std::int64_t now) {
  if (ask_after_ns_ == 0 || comm.role() != Role::kReceive) return;
  if (waited_ == nullptr) waited_ = std::make_unique<Waited>();
  const auto awaited = comm.awaited_line();
  if (std::exchange(waited_->line, awaited) != awaited) waited_->since_ns = now;
  if (!awaited || now - waited_->since_ns < ask_after_ns_) return;
  if (!comm.link().exchanges_reports() || comm.link().has_ended()) return;
  waited_->since_ns = now;
  const RepairEngine& engine = state(comm).engine;
  send(comm, wire::PathNote{.path = awaited->path,
                            .generation = engine.status(awaited->path).generation,
                            .news = wire::PathNews::kWaits,
                            .position = awaited->position});
}

// The fence of the path shows to both ends what has to be granted again. If a message was lost,
// which cannot be sent again, it ends the comm.
void Recover::look_for_line(Comm& comm, const wire::PathNote& note) {
  const char* const lost = comm.how_lost(note.position);
  if (lost == nullptr || !comm.is_up(note.path) || !can_recover(comm)) return;
  if (state_->engine.status(note.path).generation != note.generation) return;
  fail_path(comm, note.path, lost);
}

// --- The engine ---

RepairEngine::Moment Recover::moment(Comm& comm) noexcept {
  return {
      .ns = now_ns(), .has_standby = comm.has_standby(), .has_channel = comm.link().has_channel()};
}

Recover::State& Recover::state(Comm& comm) {
  if (state_ != nullptr) return *state_;
  RepairEngine::Facts facts = {
      .is_sender = comm.role() == Role::kSend, .limits = limits_, .paths = comm.paths().size()};
  for (std::size_t path = 0; path < facts.paths; ++path) {
    const PathResources& resources = *comm.paths()[path].resources;
    facts.path[path].rail = resources.rail;
    facts.path[path].is_by_cm = is_by_cm(comm, resources);
    if (!resources.is_missing()) continue;
    facts.path[path].status.state = PathState::kClear;
    facts.path[path].status.is_port_well = ask_own_port(comm, path).is_active;
  }
  state_ = std::make_unique<State>(facts);
  for (Path& path : comm.paths()) {
    path.repair = std::make_unique<PathRepair>();
    path.repair->first_peer_port = path.resources->peer_device;
    if (!path.resources->is_missing()) continue;
    path.repair->cause = "it was missing when the connection was made";
    path.repair->quiet_since_ns = now_ns();
    if (facts.is_sender) path.repair->ours = wire::SenderReport{};  // it has carried nothing
    if (!facts.path[path.index].status.is_port_well)
      path.repair->trouble = wire::PathTrouble::kPortDown;
  }
  return *state_;
}

PathRepair& Recover::repair_of(Comm& comm, std::size_t path) {
  (void)state(comm);
  return *comm.paths()[path].repair;
}

bool Recover::can_recover(const Comm& comm) noexcept {
  return comm.link().exchanges_reports() && !comm.link().has_ended();
}

void Recover::fail_path(Comm& comm, std::size_t path, const std::string& cause) {
  fail_path(comm, path, cause, of_path(path, PathEvent::Kind::kFailed));
}

void Recover::note_failure(Comm& comm, std::size_t path, const std::string& cause,
                           wire::PathTrouble trouble, wire::PathTrouble their_trouble) {
  PathRepair& known = repair_of(comm, path);
  known.cause = cause;
  known.trouble = trouble;
  known.their_trouble = their_trouble;
  known.place.clear();
  known.quiet_since_ns = comm.watch().waits_since_ns(now_ns());
}

void Recover::fail_path(Comm& comm, std::size_t path, const std::string& cause,
                        const RepairEvent& event, wire::PathTrouble trouble) {
  note_failure(comm, path, cause, trouble, wire::PathTrouble::kNone);
  // A caller that posts must not go on with this path, also if the event has to wait.
  if (state_->is_busy && comm.is_up(path)) {
    state_->engine.suspend(path);
    if (!comm.suspend(comm.paths()[path])) {
      (void)on_fault(comm, Errc::kSystem, "go on without a path", describe({Errc::kNoMemory}));
      return;
    }
  }
  take(comm, event);
}

void Recover::take(Comm& comm, const RepairEvent& event, const PathMessage* message) {
  State& state = this->state(comm);
  if (state.is_busy) return state.waiting.push_back(event);
  state.is_busy = true;
  carry_out(comm, state.engine.on(event, moment(comm)), message);
  while (!state.waiting.empty() && !has_ended()) {
    const RepairEvent next = state.waiting.front();
    state.waiting.erase(state.waiting.begin());
    carry_out(comm, state.engine.on(next, moment(comm)), nullptr);
  }
  state.is_busy = false;
}

void Recover::advance(Comm& comm) {
  take_in_band(comm);
  while (std::optional<PathMail> mail = comm.link().take_mail()) take_mail(comm, *std::move(mail));
  for (std::size_t path = 0; path < comm.paths().size(); ++path) check_port(comm, path);
  if (state_ == nullptr && !(comm.has_missing_paths() && can_recover(comm))) return;
  const RepairEngine& engine = state(comm).engine;
  for (std::size_t path = 0; path < comm.paths().size(); ++path) {
    RepairEvent look = event_at(path, RepairEvent::Kind::kLook);
    if (engine.status(path).state == PathState::kFencing) {
      const Comm::FenceState fence = comm.poll_fence(comm.paths()[path]);
      look.is_refused = fence == Comm::FenceState::kRefused;
      look.is_fenced = fence == Comm::FenceState::kDrained;
      look.is_in_error = look.is_fenced || fence == Comm::FenceState::kInError;
    }
    take(comm, look);
  }
  // Only now, because a look at one path may have shown that another has failed.
  take(comm, {.kind = RepairEvent::Kind::kLookAtComm});
  write_in_band(comm);
  if (has_ended()) return comm.link().set_due(Link::kNever);  // the alarm stays
  comm.link().set_due(std::min(engine.due_ns(moment(comm)), state_->in_band.due_ns()));
  const bool has_rest = comm.regrant_rest();
  if (engine.needs_service() || has_rest || ending_.suspect() || !comm.has_usable_path()) {
    return;
  }
  comm.gate().lower_alarm();
}

// --- Mail ---

void Recover::take_mail(Comm& comm, PathMail mail) {
  if (const auto* const message = std::get_if<PathMessage>(&mail)) {
    take_message(comm, *message);
  } else if (auto* const made = std::get_if<PathMade>(&mail)) {
    take_made(comm, std::move(*made));
  } else if (const auto* const failed = std::get_if<QueueFailed>(&mail)) {
    take_queue_error(comm, *failed);
  } else {
    take_failure(comm, std::get<PathNotMade>(mail));
  }
}

// The completions of a queue pair in ERROR say the same, unless their queue is lost or nobody
// polls.
void Recover::take_queue_error(Comm& comm, const QueueFailed& failed) {
  const bool is_in_use = comm.is_up(failed.path) &&
                         comm.paths()[failed.path].resources->queues.qp->qp_num == failed.qpn;
  if (!is_in_use || !can_recover(comm)) return;
  fail_path(comm, failed.path, std::string("its device reports: ") + failed.event);
}

void Recover::take_message(Comm& comm, const PathMessage& message) {
  const std::size_t path =
      std::visit([](const auto& any) { return std::size_t{any.path}; }, message);
  if (path >= comm.paths().size() || !is_from_other_role(message, comm.role())) {
    return on_protocol_error(comm, "a report about a path that does not exist");
  }
  const std::uint32_t serial = std::visit([](const auto& any) { return any.serial; }, message);
  if (!state(comm).seen.add(serial)) return;  // it has come by the other way as well
  if (const auto* const note = std::get_if<wire::PathNote>(&message);
      note != nullptr && note->news == wire::PathNews::kWaits) {
    return look_for_line(comm, *note);
  }
  if (take_move_message(comm, message)) return;
  RepairEvent event =
      of_path(path, std::visit([](const auto& any) { return event_of(any); }, message));
  const bool says_failed = event.of_path.kind == PathEvent::Kind::kPeerFenced ||
                           event.of_path.kind == PathEvent::Kind::kPeerCannotFence;
  if (says_failed && comm.is_up(path)) {
    if (!can_recover(comm)) {
      (void)on_fault(comm, Errc::kPeerClosed, "go on",
                     ends_of(comm, path).there + " has given up the last path");
      return;
    }
    note_failure(comm, path, "the other end has taken it out of use", wire::PathTrouble::kNone,
                 wire::PathTrouble::kNone);
    // A queue pair that the other end fences in the middle of a message may refuse it with a status
    // that otherwise shows a fault of a program.
    ending_.forget_suspicion_of(path);
  }
  const auto* const fenced = std::get_if<wire::Fenced>(&message);
  if (fenced != nullptr && fenced->generation == state_->engine.status(path).generation)
    repair_of(comm, path).their_trouble = fenced->trouble;
  if (fenced != nullptr && !fenced->finished.empty()) {
    PathRepair& known = repair_of(comm, path);
    known.finished = fenced->finished;
    known.finished_end = std::get<wire::SenderReport>(fenced->report).taken;
    event.has_finished = true;
  }
  take(comm, event, &message);
}

// --- In-band ---

void Recover::send(Comm& comm, PathMessage message) {
  State& state = this->state(comm);
  std::visit([&](auto& any) { any.serial = ++state.last_serial; }, message);
  const std::uint32_t path = std::visit([](const auto& any) { return any.path; }, message);
  const auto* const note = std::get_if<wire::PathNote>(&message);
  const auto news = note == nullptr ? 0U : static_cast<std::uint32_t>(note->news);
  const std::uint32_t kind = static_cast<std::uint32_t>(message.index()) << 16 | news << 8 | path;
  wire::Bytes frame = comm.link().send_about_path(std::move(message));
  if (!frame.empty() && comm.in_band_path() != nullptr) state.in_band.add(kind, std::move(frame));
}

void Recover::take_in_band(Comm& comm) {
  const std::optional<wire::InBandCell> cell = comm.read_in_band();
  if (!cell || comm.link().has_ended()) return;
  InBand& in_band = state(comm).in_band;
  in_band.take(*cell);
  for (;;) {
    const auto frame = in_band.next();
    if (frame && !*frame) return;
    const auto message = frame ? path_message_in(**frame) : std::nullopt;
    if (!message || !*message)
      return on_protocol_error(comm, "a message about a path that cannot be read");
    take_message(comm, **message);
  }
}

void Recover::write_in_band(Comm& comm) {
  InBand& in_band = state_->in_band;
  const std::int64_t now = now_ns();
  if (has_ended() || in_band.due_ns() > now) return;
  Path* const path = comm.in_band_path();
  wire::InBandCell* const cell = comm.own_cell();
  if (path == nullptr || cell == nullptr) return in_band.put_off(now);
  in_band.fill(*cell, now);
  comm.write_in_band(*path);
}

void Recover::take_made(Comm& comm, PathMade made) {
  if (made.prepares) return take_prepared(comm, std::move(made));
  PathRepair& path = repair_of(comm, made.path);
  if (!state_->engine.awaits_queues(made.path, made.generation)) {
    if (made.resources != nullptr) comm.link().discard(std::move(made.resources));
    return;
  }
  if (made.resources == nullptr) {
    path.offer = std::move(made.offer);
    path.window_key = made.window_key;
    return take(comm, of_path(made.path, PathEvent::Kind::kQueuesMade));
  }
  BL_ASSERT(path.made == nullptr, "one queue pair at a time waits to be joined");
  path.answer = std::move(made.answer);
  if (comm.role() == Role::kReceive) path.window_key = made.window_key;
  path.made = std::move(made.resources);
  take(comm, event_at(made.path, RepairEvent::Kind::kConnected));
}

void Recover::take_failure(Comm& comm, const PathNotMade& failure) {
  if (failure.prepares) return take_not_prepared(comm, failure);
  if (failure.generation != state(comm).engine.status(failure.path).generation) return;
  BL_INFO(kLogNet, "%s: path %d of %zu cannot be made anew yet: %s",
          comm.name_for_log(failure.path).c_str(), failure.path + 1, comm.paths().size(),
          failure.why.c_str());
  repair_of(comm, failure.path).last_try = failure.why;
  take(comm, of_path(failure.path, PathEvent::Kind::kQueuesFailed));
}

// --- Ports ---

// A device may retry for seconds before a completion says what the event says at once. An
// event may be false, so the port is asked.
void Recover::check_port(Comm& comm, std::size_t path) {
  const Device& device = *comm.paths()[path].resources->device;
  if (device.context->is_gone()) lose_device(comm, path);
  const bool is_up = comm.is_up(path);
  const PortHistory& port = is_up ? *device.history : *comm.paths()[path].own_device().history;
  const std::int64_t event_ns = is_up ? port.went_down_ns() : port.newest_ns();
  if (event_ns == 0 || !can_recover(comm)) return;
  const std::pair event(&port, event_ns);
  if (std::exchange(repair_of(comm, path).port_event, event) == event) return;
  if (is_up) return check_port_in_use(comm, path);
  take(comm, ask_own_port(comm, path));
}

void Recover::check_port_in_use(Comm& comm, std::size_t path) {
  const PathResources& resources = *comm.paths()[path].resources;
  const OwnPortState port = query_own_port(*resources.device, resources.own);
  const std::int64_t now = now_ns();
  const PortReport report =
      report_on_port(port, resources.own, *resources.device->history, now, now);
  if (report.trouble.empty()) return;
  if (port.is_active()) {
    return fail_path(comm, path, report.trouble, of_path(path, PathEvent::Kind::kFailed),
                     wire::PathTrouble::kAddress);
  }
  comm.stats().record(Event::kPortDown, 0, 0, static_cast<std::uint16_t>(path));
  fail_path(comm, path, report.trouble, of_path(path, PathEvent::Kind::kPortNotWell),
            wire::PathTrouble::kPortDown);
}

// The link has ended already if no device is left.
void Recover::lose_device(Comm& comm, std::size_t path) {
  if (!comm.link().exchanges_reports()) return;
  if (comm.link().has_ended()) {
    // The peer has closed, and its last data may still wait for READs by the device.
    if (comm.link().state() == Link::State::kGoodbye) (void)comm.lose_device_of(comm.paths()[path]);
    return;
  }
  if (state(comm).engine.is_device_gone(path)) return;
  const std::string cause = kGoneText;
  if (!can_recover(comm)) {
    (void)on_fault(comm, Errc::kSystem, "move data",
                   "the cause is at " + ends_of(comm, path).here + ": " + cause);
    return;
  }
  fail_path(comm, path, cause, event_at(path, RepairEvent::Kind::kDeviceGone),
            wire::PathTrouble::kDevice);
}

}  // namespace beeline
