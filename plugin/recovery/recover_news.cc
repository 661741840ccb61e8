// SPDX-License-Identifier: Apache-2.0
//
// The events that bring a repair forward: messages of the peer, results of the control thread,
// changes of ports, and timers.
#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/check/assert.h"
#include "plugin/device/port_report.h"
#include "plugin/recovery/recover.h"
#include "plugin/recovery/times.h"
#include "plugin/transfer/recv_comm.h"

namespace beeline {
namespace {

bool is_from_other_role(const PathMessage& message, Role ours) noexcept {
  const auto* const fenced = std::get_if<wire::Fenced>(&message);
  if (fenced == nullptr) return true;  // the table sees to that
  return std::holds_alternative<wire::SenderReport>(fenced->report) == (ours == Role::kReceive);
}

PathEvent event_of(const wire::Fenced& message) noexcept {
  return {.kind = PathEvent::Kind::kFenced,
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
    case wire::PathNews::kCannotFence: event.kind = PathEvent::Kind::kCannotFence; break;
  }
  return event;
}
PathEvent event_of(const PathMessage& message) {
  return std::visit([](const auto& any) { return event_of(any); }, message);
}

}  // namespace

// --- Mail ---

void Recover::take_mail(Comm& comm, PathMail mail) {
  if (const auto* const message = std::get_if<PathMessage>(&mail)) {
    take_message(comm, *message);
  } else if (auto* const made = std::get_if<PathMade>(&mail)) {
    take_made(comm, std::move(*made));
  } else {
    take_failure(comm, std::get<PathNotMade>(mail));
  }
}

void Recover::take_message(Comm& comm, const PathMessage& message) {
  const std::size_t path =
      std::visit([](const auto& any) { return std::size_t{any.path}; }, message);
  if (path >= comm.paths().size() || !is_from_other_role(message, comm.role())) {
    return give_up_.on_protocol_error(comm, "a report about a path that does not exist");
  }
  const PathEvent event = event_of(message);
  const bool says_failed =
      event.kind == PathEvent::Kind::kFenced || event.kind == PathEvent::Kind::kCannotFence;
  if (says_failed && comm.is_up(path)) {
    if (!can_recover(comm, path)) {
      (void)give_up_.on_fault(comm, Errc::kPeerClosed, "go on",
                              ends_of(comm, path).there + " has given up the last path");
      return;
    }
    repair_of(comm, path).cause = "it has failed at the other end";
    // A queue pair that the other end fences in the middle of a message may refuse it with a status
    // that otherwise shows a fault of a program.
    give_up_.forget_suspicion_of(path);
  }
  take_event(comm, path, event, &message);
  if (const auto* const fenced = std::get_if<wire::Fenced>(&message)) {
    take_finished(comm, path, *fenced);
  }
  const PathStatus& status = repair_of(comm, path).status;
  const bool neither_fences = event.kind == PathEvent::Kind::kCannotFence && status.is_unfenced &&
                              event.generation == status.generation;
  if (neither_fences) on_two_refusals(comm, path);
}

// The message may be a repetition.
void Recover::take_finished(Comm& comm, std::size_t path, const wire::Fenced& message) {
  if (message.finished.empty()) return;
  Repair& repair = repair_of(comm, path);
  if (repair.finished_until_ns == BackOff::kNever) {
    repair.finished_until_ns = now_ns() + times::kLongestArrivalNs;
  }
  repair.finished = message.finished;
  repair.finished_end = std::get<wire::SenderReport>(message.report).taken;
}

void Recover::check_finished(Comm& comm, std::size_t path) {
  Repair& repair = repair_of(comm, path);
  repair.finished_until_ns = BackOff::kNever;
  comm.collect();
  const auto& receiver = static_cast<const RecvComm&>(comm);
  if (receiver.missing_of(repair.finished, repair.finished_end).empty()) return;
  (void)give_up_.on_fault(comm, Errc::kSystem, "receive",
                          "the cause is at " + ends_of(comm, path).here +
                              ": its device has acknowledged data that it has lost");
}

// A device that is gone takes nothing, so its end needs no fence at the other.
void Recover::on_two_refusals(Comm& comm, std::size_t path) {
  Repair& repair = repair_of(comm, path);
  if (comm.paths()[path].device->context->is_gone()) {
    if (repair.peer_fenced_ns == 0) repair.peer_fenced_ns = now_ns();
    return;
  }
  // The peer repeats its message.
  if (now_ns() - repair.fenced_ns < times::kLongestNewsNs) return;
  (void)give_up_.on_fault(comm, Errc::kSystem, "go on without a path",
                          "the devices of neither end move the queue pair of a path to ERROR");
}

void Recover::take_made(Comm& comm, PathMade made) {
  Repair& repair = repair_of(comm, made.path);
  const PathState state = repair.status.state;
  const bool is_awaited = made.generation == repair.status.generation &&
                          (state == PathState::kMaking || state == PathState::kProbing);
  if (!is_awaited) {
    if (made.resources != nullptr) comm.link().discard(std::move(made.resources));
    return;
  }
  if (made.resources == nullptr) {
    repair.offer = std::move(made.offer);
    repair.ring_key = made.ring_key;
    take_local(comm, made.path, PathEvent::Kind::kQueuesMade);
    return;
  }
  BL_ASSERT(repair.made == nullptr, "one queue pair at a time waits to be joined");
  repair.answer = std::move(made.answer);
  repair.made = std::move(made.resources);
  repair.join_until_ns = now_ns() + times::kLongestJoinNs;
  join_made(comm, made.path);
}

void Recover::take_failure(Comm& comm, const PathNotMade& failure) {
  Repair& repair = repair_of(comm, failure.path);
  if (failure.generation != repair.status.generation) return;
  BL_INFO(kLogNet, "%s: path %d of %zu cannot be made anew yet: %s",
          comm.name_for_log(failure.path).c_str(), failure.path + 1, comm.paths().size(),
          failure.why.c_str());
  repair.last_try = failure.why;
  take_local(comm, failure.path, PathEvent::Kind::kQueuesFailed);
}

// --- Ports and time ---

// A device may retry for seconds before a completion says what the event says at once. An
// event may be false, so the port is asked.
void Recover::check_ports(Comm& comm) {
  for (std::size_t path = 0; path < comm.paths().size(); ++path) {
    const Device& device = *comm.paths()[path].device;
    if (device.context->is_gone()) lose_device(comm, path);
    const bool is_up = comm.is_up(path);
    const PortHistory& port = is_up ? *device.history : *own_device(comm, path).history;
    const std::int64_t event_ns = is_up ? port.went_down_ns() : port.newest_ns();
    if (event_ns == 0 || !can_recover(comm, path)) continue;
    if (std::exchange(repair_of(comm, path).port_event_ns, event_ns) == event_ns) continue;
    check_port(comm, path);
  }
}

// The link has ended already if no device is left.
void Recover::lose_device(Comm& comm, std::size_t path) {
  if (!comm.link().exchanges_reports()) return;
  if (comm.link().has_ended()) {
    // The peer has closed, and its last data may still wait for READs by the device.
    if (comm.link().state() == Link::State::kGoodbye) (void)comm.lose_device_of(path);
    return;
  }
  Repair& repair = repair_of(comm, path);
  if (std::exchange(repair.is_device_gone, true)) return;
  repair.cause = "its device was removed from its host, or has failed for good";
  if (!can_recover(comm, path)) {
    (void)give_up_.on_fault(comm, Errc::kSystem, "move data",
                            "the cause is at " + ends_of(comm, path).here + ": " + repair.cause);
    return;
  }
  take_local(comm, path, PathEvent::Kind::kPortNotWell);
}

// For a path that is not up.
void Recover::check_usable(Comm& comm, std::size_t path) {
  Repair& repair = repair_of(comm, path);
  const bool is_well = is_usable(comm, path);
  take_local(comm, path, is_well ? PathEvent::Kind::kPortWell : PathEvent::Kind::kPortNotWell);
  const bool is_clear = repair.status.state == PathState::kClear;
  if (is_well && is_clear && !comm.paths()[path].queues.cm) repair.attempts.set_due(now_ns());
}

void Recover::check_port(Comm& comm, std::size_t path) {
  if (!comm.is_up(path)) return check_usable(comm, path);
  Repair& repair = repair_of(comm, path);
  const PathResources& resources = comm.paths()[path];
  const OwnPortState port = query_own_port(*resources.device, resources.own);
  const std::int64_t now = now_ns();
  const PortReport report =
      report_on_port(port, resources.own, *resources.device->history, now, now);
  if (report.trouble.empty()) return;
  repair.cause = report.trouble;
  if (!port.is_active()) {
    comm.stats().record(Event::kPortDown, 0, 0, static_cast<std::uint16_t>(path));
  }
  take_local(comm, path,
             port.is_active() ? PathEvent::Kind::kFailed : PathEvent::Kind::kPortNotWell);
}

bool Recover::is_drained(Comm& comm, std::size_t path, std::int64_t now) {
  Repair& repair = repair_of(comm, path);
  const bool is_fenced = comm.is_fenced(path);
  if (!repair.status.is_unfenced)
    return is_fenced || now - repair.fenced_ns >= times::kLongestDrainNs;
  if (repair.status.has_peer_report && repair.peer_fenced_ns == 0) repair.peer_fenced_ns = now;
  return repair.peer_fenced_ns != 0 && now - repair.peer_fenced_ns >= times::kLongestWayNs;
}

void Recover::advance_path(Comm& comm, std::size_t path, std::int64_t now) {
  Repair& repair = repair_of(comm, path);
  if (repair.status.state == PathState::kFencing && is_drained(comm, path, now)) {
    take_local(comm, path, PathEvent::Kind::kDrained);
  }
  if (repair.is_device_gone && repair.status.state == PathState::kClear && !repair.is_device_left) {
    repair.is_device_left = comm.lose_device_of(path);
    if (repair.is_device_left) check_usable(comm, path);
  }
  check_own_device(comm, path, now);
  if (now >= repair.finished_until_ns) check_finished(comm, path);
  if (repair.made != nullptr) join_made(comm, path);
  if (repair.attempts.is_due(now)) {
    repair.attempts.wait(now);
    if (!repair.status.is_port_well) check_port(comm, path);
    if (repair.status.is_sender) {
      take_local(comm, path, PathEvent::Kind::kTimer);
    } else if (repair.status.is_port_well) {
      repair.attempts.stop();  // the next offer is the sender's
    }
  }
  if (repair.repeats.is_due(now)) {
    repair.repeats.wait(now);
    take_local(comm, path, PathEvent::Kind::kTimer);
  }
}

void Recover::advance(Comm& comm) {
  while (std::optional<PathMail> mail = comm.link().take_mail()) take_mail(comm, *std::move(mail));
  check_ports(comm);
  if (repairs_ == nullptr) return;
  bool is_busy = false;
  std::int64_t due_ns = Link::kNever;
  const std::int64_t now = now_ns();
  for (std::size_t path = 0; path < comm.paths().size(); ++path) {
    advance_path(comm, path, now);
  }
  // Only now, because a look at one path may have shown that another has failed.
  for (const Repair& repair : *repairs_) {
    const PathState state = repair.status.state;
    is_busy = is_busy || state == PathState::kFencing || state == PathState::kFenced ||
              repair.made != nullptr || (repair.is_device_gone && !repair.is_device_left);
    const bool is_draining =
        state == PathState::kFencing && (!repair.status.is_unfenced || repair.peer_fenced_ns != 0);
    due_ns = std::min(due_ns, is_draining ? now + times::kDrainLookEveryNs : repair.due_ns());
  }
  check_outage(comm, now);
  advance_standbys(comm, now);
  if (give_up_.has_ended()) return comm.link().set_due(Link::kNever);  // the alarm stays
  comm.link().set_due(std::min({due_ns, outage_.due_ns(), standbys_due_ns(comm, now)}));
  const bool is_resuming = comm.is_resuming();
  if (is_busy || is_resuming || give_up_.has_suspicion() || !comm.has_usable_path()) return;
  comm.gate().lower_alarm();
}

}  // namespace beeline
