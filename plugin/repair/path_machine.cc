// SPDX-License-Identifier: Apache-2.0
#include "plugin/repair/path_machine.h"

#include "common/check/assert.h"

namespace beeline {
namespace {

using Kind = PathEvent::Kind;
using enum PathAction;

PathTransition to(const PathStatus& status, PathState state, PathActions actions) noexcept {
  PathTransition made = {.next = status,
                         .actions = actions,
                         .message_generation = status.generation,
                         .has_peer_report = status.has_peer_report};
  made.next.state = state;
  return made;
}

PathTransition stay(const PathStatus& status, PathActions actions) noexcept {
  return to(status, status.state, actions);
}

// The event is out of date, a repetition, or needs no answer.
PathTransition ignore(const PathStatus& status) noexcept { return stay(status, {}); }

PathTransition note_port(PathStatus status, bool is_well) noexcept {
  status.is_port_well = is_well;
  return ignore(status);
}

// --- From kUp and kAnswered: the path has failed ---

PathTransition fence(const PathStatus& status) noexcept {
  return to(status, PathState::kFencing, {kDetach, kMoveToError});
}
PathTransition fence_for_port(PathStatus status) noexcept {
  status.is_port_well = false;
  return fence(status);
}
PathTransition fence_for_peer(PathStatus status) noexcept {
  status.has_peer_report = true;
  return to(status, PathState::kFencing, {kDetach, kMoveToError, kKeepPeerReport});
}

// --- Generations ---

// The sender, from kClear.
PathTransition offer(PathStatus status) noexcept {
  if (!status.is_port_well || status.is_held) return ignore(status);
  ++status.generation;
  status.has_peer_report = status.is_unfenced = false;
  return to(status, PathState::kMaking, {kMakeQueues});
}

// The sender, from kMaking, kOffered and kProbing. The peer may have answered; then it hears of the
// next offer.
PathTransition give_up_offer(const PathStatus& status) noexcept {
  return to(status, PathState::kClear, {kDestroyQueues});
}

// The receiver. The peer says FENCED again until it has our report, which it missed if it still
// asks. A sender that comes here never was in kUp with this generation, so it has lost nothing.
PathTransition answer_fenced(const PathStatus& status, const PathEvent& event,
                             PathActions before) noexcept {
  PathTransition made = to(status, PathState::kClear, before);
  if (event.peer_has_report) return made;
  made.actions = before | PathActions{kSendFenced};
  made.message_generation = event.generation;
  made.has_peer_report = true;
  return made;
}

// The receiver, which has no queue pair, or only one that has carried nothing.
PathTransition consider_offer(PathStatus status, const PathEvent& event,
                              PathActions before) noexcept {
  if (!status.is_port_well) {
    status.refused = event.generation;
    PathTransition made = to(status, PathState::kClear, before | PathActions{kSendNotNow});
    made.message_generation = event.generation;
    return made;
  }
  status.generation = event.generation;
  status.refused = 0;
  status.has_peer_report = status.is_unfenced = false;
  return to(status, PathState::kMaking, before | PathActions{kMakeQueues});
}

// The receiver, from kMaking: the port has failed.
PathTransition refuse_offer(PathStatus status) noexcept {
  status.is_port_well = false;
  status.refused = status.generation;
  return to(status, PathState::kClear, {kDestroyQueues, kSendNotNow});
}

// --- One function for each state ---
// Messages of an older generation do not get here, nor those that are errors in every state. Only
// an OFFER may be newer than this end. Where a switch ignores events at this end that cannot
// happen, as kDrained in kUp, the caller was too late: the state has changed in the meantime.

PathTransition when_up(const PathStatus& status, const PathEvent& event) noexcept {
  switch (event.kind) {
    case Kind::kFailed:
    case Kind::kPeerCannotFence: return fence(status);
    case Kind::kPortNotWell: return fence_for_port(status);
    case Kind::kPortWell: return note_port(status, true);
    case Kind::kPeerFenced: return fence_for_peer(status);
    case Kind::kAnswer: return stay(status, {kSendReady});  // the peer missed our READY
    case Kind::kOffer:
      // The peer missed our ANSWER. But a new generation follows only when both ends are fenced.
      if (event.generation == status.generation) return stay(status, {kSendAnswer});
      return stay(status, {kProtocolError});
    case Kind::kFenceRefused:
    case Kind::kDrained:
    case Kind::kTimer:
    case Kind::kQueuesMade:
    case Kind::kProbed:
    case Kind::kQueuesFailed:
    case Kind::kNotNow:  // before the answer by which the path came up
    case Kind::kWell:    // the same
    case Kind::kReady: return ignore(status);
  }
  return ignore(status);
}

PathTransition when_fencing(PathStatus status, const PathEvent& event) noexcept {
  switch (event.kind) {
    case Kind::kDrained: {
      const PathActions told = {kTakeReport, kSendFenced};
      if (!status.has_peer_report) return to(status, PathState::kFenced, told);
      return to(status, PathState::kClear, told | PathActions{kResolve});
    }
    case Kind::kPeerFenced:
    case Kind::kOffer:
      // A newer offer shows that the peer is fenced, too, and brings its report. The first report
      // is kept.
      if (status.has_peer_report) return ignore(status);
      if (event.kind == Kind::kOffer && event.generation == status.generation) {
        return ignore(status);
      }
      status.has_peer_report = true;
      return stay(status, {kKeepPeerReport});
    case Kind::kFenceRefused:
      status.is_unfenced = true;
      return stay(status, status.has_peer_report ? PathActions{} : PathActions{kSendCannotFence});
    case Kind::kTimer:
      if (!status.is_unfenced || status.has_peer_report) return ignore(status);
      return stay(status, {kSendCannotFence});
    case Kind::kPortWell: return note_port(status, true);
    case Kind::kPortNotWell: return note_port(status, false);
    case Kind::kFailed:
    case Kind::kPeerCannotFence:  // our report will follow
    case Kind::kQueuesMade:
    case Kind::kProbed:
    case Kind::kQueuesFailed:
    case Kind::kAnswer:
    case Kind::kNotNow:
    case Kind::kWell:
    case Kind::kReady: return ignore(status);
  }
  return ignore(status);
}

PathTransition when_fenced(PathStatus status, const PathEvent& event) noexcept {
  switch (event.kind) {
    case Kind::kPeerFenced:
    case Kind::kOffer:
      if (event.kind == Kind::kOffer && event.generation == status.generation) {
        return ignore(status);
      }
      // The peer repeats its offer, which finds us in kClear.
      status.has_peer_report = true;
      return to(status, PathState::kClear, {kKeepPeerReport, kResolve});
    case Kind::kPeerCannotFence:  // the peer missed our report
    case Kind::kTimer: return stay(status, {kSendFenced});
    case Kind::kPortWell: return note_port(status, true);
    case Kind::kPortNotWell: return note_port(status, false);
    case Kind::kFailed:
    case Kind::kFenceRefused:
    case Kind::kDrained:
    case Kind::kQueuesMade:
    case Kind::kProbed:
    case Kind::kQueuesFailed:
    case Kind::kAnswer:
    case Kind::kNotNow:
    case Kind::kWell:
    case Kind::kReady: return ignore(status);
  }
  return ignore(status);
}

PathTransition on_port_well_when_clear(PathStatus status) noexcept {
  if (status.is_port_well) return ignore(status);
  status.is_port_well = true;
  if (status.is_sender) return offer(status);
  PathTransition made = stay(status, {kSendWell});
  // The peer knows an offer that was refused by its own number.
  if (status.refused != 0) made.message_generation = status.refused;
  made.next.refused = 0;
  return made;
}

PathTransition when_clear(const PathStatus& status, const PathEvent& event) noexcept {
  switch (event.kind) {
    case Kind::kPeerCannotFence:
    case Kind::kPeerFenced: return answer_fenced(status, event, {});
    case Kind::kOffer: {
      if (event.generation != status.generation) return consider_offer(status, event, {});
      // We answered this offer, and could not make the queue pair. The peer missed our NOT_NOW.
      return stay(status, {kSendNotNow});
    }
    case Kind::kTimer:
    case Kind::kWell: return status.is_sender ? offer(status) : ignore(status);
    case Kind::kPortWell: return on_port_well_when_clear(status);
    case Kind::kPortNotWell: return note_port(status, false);
    case Kind::kFailed:
    case Kind::kFenceRefused:
    case Kind::kDrained:
    case Kind::kQueuesMade:
    case Kind::kProbed:
    case Kind::kQueuesFailed:
    case Kind::kAnswer:  // the next offer tells the peer that we have given up this one
    case Kind::kNotNow:
    case Kind::kReady: return ignore(status);
  }
  return ignore(status);
}

PathTransition when_making(PathStatus status, const PathEvent& event) noexcept {
  switch (event.kind) {
    case Kind::kQueuesMade:
      if (status.is_sender) return to(status, PathState::kOffered, {kSendOffer});
      return to(status, PathState::kAnswered, {kSendAnswer});
    case Kind::kQueuesFailed:
      return to(status, PathState::kClear,
                status.is_sender ? PathActions{} : PathActions{kSendNotNow});
    case Kind::kOffer:
      // An offer of the same generation is a repetition: the answer will follow.
      if (event.generation == status.generation) return ignore(status);
      return consider_offer(status, event, {kDestroyQueues});
    case Kind::kPortNotWell:
      if (!status.is_sender) return refuse_offer(status);
      status.is_port_well = false;
      return give_up_offer(status);
    case Kind::kPortWell: return note_port(status, true);
    case Kind::kFailed:
    case Kind::kFenceRefused:
    case Kind::kPeerCannotFence:
    case Kind::kDrained:
    case Kind::kTimer:
    case Kind::kProbed:
    case Kind::kPeerFenced:  // of this generation there is nothing to report yet
    case Kind::kAnswer:
    case Kind::kNotNow:
    case Kind::kWell:
    case Kind::kReady: return ignore(status);
  }
  return ignore(status);
}

PathTransition when_offered(PathStatus status, const PathEvent& event) noexcept {
  switch (event.kind) {
    case Kind::kAnswer: return to(status, PathState::kProbing, {kConnectQueues});
    case Kind::kPeerCannotFence:
    case Kind::kPeerFenced: return answer_fenced(status, event, {kDestroyQueues});
    case Kind::kPortNotWell: status.is_port_well = false; return give_up_offer(status);
    case Kind::kNotNow:
    case Kind::kQueuesFailed:
    case Kind::kFailed: return give_up_offer(status);
    case Kind::kTimer:
    case Kind::kWell: return stay(status, {kSendOffer});  // the peer refused, and we missed that
    case Kind::kPortWell: return note_port(status, true);
    case Kind::kFenceRefused:
    case Kind::kDrained:
    case Kind::kQueuesMade:
    case Kind::kProbed:
    case Kind::kOffer:
    case Kind::kReady: return ignore(status);
  }
  return ignore(status);
}

PathTransition when_probing(PathStatus status, const PathEvent& event) noexcept {
  switch (event.kind) {
    case Kind::kProbed: return to(status, PathState::kUp, {kSendReady});
    case Kind::kPeerCannotFence:
    case Kind::kPeerFenced: return answer_fenced(status, event, {kDestroyQueues});
    case Kind::kPortNotWell: status.is_port_well = false; return give_up_offer(status);
    case Kind::kQueuesFailed:
    case Kind::kFailed: return give_up_offer(status);
    case Kind::kPortWell: return note_port(status, true);
    case Kind::kTimer:  // the probe completes, with success or not
    case Kind::kFenceRefused:
    case Kind::kDrained:
    case Kind::kQueuesMade:
    case Kind::kOffer:
    case Kind::kAnswer:
    case Kind::kNotNow:  // before the answer
    case Kind::kWell:
    case Kind::kReady: return ignore(status);
  }
  return ignore(status);
}

PathTransition when_answered(const PathStatus& status, const PathEvent& event) noexcept {
  switch (event.kind) {
    case Kind::kReady: return to(status, PathState::kUp, {kAllowGrants});
    case Kind::kOffer:
      if (event.generation == status.generation) return stay(status, {kSendAnswer});
      // The peer has given up the offer that we answered, and has not sent anything.
      return consider_offer(status, event, {kDetach, kDestroyQueues});
    case Kind::kFailed:
    case Kind::kPeerCannotFence: return fence(status);
    case Kind::kPortNotWell: return fence_for_port(status);
    case Kind::kPeerFenced: return fence_for_peer(status);
    case Kind::kTimer: return stay(status, {kSendAnswer});
    case Kind::kPortWell: return note_port(status, true);
    case Kind::kFenceRefused:
    case Kind::kDrained:
    case Kind::kQueuesMade:
    case Kind::kProbed:
    case Kind::kQueuesFailed:
    case Kind::kAnswer:
    case Kind::kNotNow:
    case Kind::kWell: return ignore(status);
  }
  return ignore(status);
}

PathTransition when_current(const PathStatus& status, const PathEvent& event) noexcept {
  switch (status.state) {
    case PathState::kUp: return when_up(status, event);
    case PathState::kFencing: return when_fencing(status, event);
    case PathState::kFenced: return when_fenced(status, event);
    case PathState::kClear: return when_clear(status, event);
    case PathState::kMaking: return when_making(status, event);
    case PathState::kOffered: return when_offered(status, event);
    case PathState::kProbing: return when_probing(status, event);
    case PathState::kAnswered: return when_answered(status, event);
  }
  return ignore(status);
}

// Whether the other end may send this kind of message.
bool is_for(bool is_sender, Kind message) noexcept {
  switch (message) {
    case Kind::kOffer:
    case Kind::kReady: return !is_sender;
    case Kind::kAnswer:
    case Kind::kNotNow:
    case Kind::kWell: return is_sender;
    case Kind::kPeerFenced:
    case Kind::kPeerCannotFence:
    case Kind::kFailed:
    case Kind::kFenceRefused:
    case Kind::kDrained:
    case Kind::kTimer:
    case Kind::kPortWell:
    case Kind::kPortNotWell:
    case Kind::kQueuesMade:
    case Kind::kProbed:
    case Kind::kQueuesFailed: return true;
  }
  return true;
}

PathTransition next_of(const PathStatus& status, const PathEvent& event) noexcept {
  if (!event.is_message()) return when_current(status, event);
  if (!is_for(status.is_sender, event.kind)) return stay(status, {kProtocolError});
  if (is_older(event.generation, status.generation)) {
    // A sender that has resolved a generation and offered the next: the peer may still wait for
    // the report on the old one, because both our FENCED and our OFFER were lost.
    const bool is_asking = event.kind == Kind::kPeerCannotFence ||
                           (event.kind == Kind::kPeerFenced && !event.peer_has_report);
    const bool may_answer = status.is_sender && status.state == PathState::kClear;
    return is_asking && may_answer ? answer_fenced(status, event, {}) : ignore(status);
  }
  // Only the sender counts generations up.
  const bool is_newer = event.generation != status.generation;
  if (is_newer && event.kind != Kind::kOffer) return stay(status, {kProtocolError});
  return when_current(status, event);
}

}  // namespace

PathTransition on_event(const PathStatus& status, const PathEvent& event) noexcept {
  const PathTransition made = next_of(status, event);
  const PathState state = made.next.state;
  BL_ASSERT(!is_older(made.next.generation, status.generation), "generations only grow");
  BL_ASSERT(state != (status.is_sender ? PathState::kAnswered : PathState::kOffered) &&
                (status.is_sender || state != PathState::kProbing),
            "the sender offers and probes, and the receiver answers");
  return made;
}

}  // namespace beeline
