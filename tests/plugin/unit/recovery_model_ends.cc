// SPDX-License-Identifier: Apache-2.0
//
// What the two ends may do next.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "plugin/repair/path_machine.h"
#include "plugin/transfer/path_reports.h"
#include "tests/plugin/unit/recovery_model.h"
#include "tests/plugin/unit/recovery_model_steps.h"
#include "tests/plugin/unit/recovery_model_world.h"

namespace beeline::test {
namespace {

using Kind = PathEvent::Kind;

// The lowest chunk of several.
Chunks first_of(Chunks chunks) { return static_cast<Chunks>(chunks & -chunks); }

// An end whose device has refused waits until the peer is fenced, and then for what is on the way.
bool may_be_drained(const ModelEnd& end, bool is_more_on_the_way) {
  if (state_of(end) != PathState::kFencing) return false;
  return !end.is_unfenced || (end.has_peer_report && !is_more_on_the_way);
}

}  // namespace

// --- The sender ---

void ModelSteps::list_sender(std::uint8_t path) {
  if (state_.is_sender_closed) return;
  const ModelPath& both = state_.paths[path];
  const bool has_acks = std::ranges::any_of(both.acks, [](Chunks acks) { return acks != 0; });
  if (has_acks) {
    add("sender polls acknowledgements", path, [=](ModelWorld& world) { world.poll_acks(path); });
  }
  if (may_be_drained(both.sender, both.grants.front().number != 0) &&
      has_room(state_.to_receiver)) {
    add("sender is drained", path, [=](ModelWorld& world) { world.drain(true, path); });
  }
  if (state_of(both.sender) == PathState::kProbing && has_room(state_.to_receiver)) {
    const bool works = both.fault == ModelFault::kNone && both.sender.live == both.receiver.live;
    add_local(works ? "probe completes" : "probe fails", true, path,
              works ? Kind::kProbed : Kind::kQueuesFailed);
  }
  list_posts(path);
  list_offers(path);
  list_making(true, path);
  list_sender_failures(path);
  list_ports(true, path, ModelFault::kSenderPort);
}

// Of what is unsent of a message: all, its first chunk, or all but the first.
void ModelSteps::list_posts(std::uint8_t path) {
  const ModelPath& both = state_.paths[path];
  if (!both.sender.is_joined || both.data.back().chunks != 0) return;
  for (std::uint8_t line = 0; line < state_.taken; ++line) {
    const Chunks unsent = state_.unsent[line];
    if (unsent == 0 || both.carried[line] != 0) continue;
    const auto post = [&](Chunks chunks) {
      add(
          "sender posts", path, [=](ModelWorld& world) { world.post(path, line, chunks); },
          StepSort::kProgress, static_cast<std::uint8_t>(line << 4 | chunks));
    };
    post(unsent);
    if (first_of(unsent) == unsent) continue;
    post(first_of(unsent));
    post(static_cast<Chunks>(unsent & ~first_of(unsent)));
  }
}

void ModelSteps::list_offers(std::uint8_t path) {
  const ModelPath& both = state_.paths[path];
  const bool may_offer = state_of(both.sender) == PathState::kClear && both.sender.is_port_well;
  if (!may_offer || !has_room(state_.to_receiver)) return;
  const bool is_vain = both.fault != ModelFault::kNone || !both.receiver.is_port_well;
  if (!is_vain) {
    add_local("sender offers", true, path, Kind::kTimer);
  } else if (state_.vain_offers != 0) {
    add(
        "sender offers in vain", path,
        [=](ModelWorld& world) {
          --world.state().vain_offers;
          world.local(true, path, Kind::kTimer);
        },
        StepSort::kFault);
  }
}

// A queue pair of the new generation.
void ModelSteps::list_making(bool is_sender, std::uint8_t path) {
  const ModelPath& both = state_.paths[path];
  const ModelChannel& channel = is_sender ? state_.to_receiver : state_.to_sender;
  if (state_of(is_sender ? both.sender : both.receiver) != PathState::kMaking) return;
  if (!has_room(channel)) return;
  add_local("queue pair is made", is_sender, path, Kind::kQueuesMade);
  if (state_.failures == 0) return;
  add(
      "queue pair cannot be made", path,
      [=](ModelWorld& world) {
        --world.state().failures;
        world.local(is_sender, path, Kind::kQueuesFailed);
      },
      StepSort::kFault);
}

void ModelSteps::list_sender_failures(std::uint8_t path) {
  const ModelPath& both = state_.paths[path];
  if (state_of(both.sender) != PathState::kUp) return;
  const bool is_waiting =
      std::ranges::any_of(both.carried, [](Chunks carried) { return carried != 0; });
  const bool is_unheard = is_waiting && both.receiver.live != both.sender.live;
  if (both.fault != ModelFault::kNone || is_unheard) {
    add_local("sender notices", true, path, Kind::kFailed);
  } else if (state_.failures != 0) {
    add(
        "sender is alarmed for no reason", path,
        [=](ModelWorld& world) {
          --world.state().failures;
          world.local(true, path, Kind::kFailed);
        },
        StepSort::kFault);
  }
}

// --- The receiver ---

void ModelSteps::list_receiver(std::uint8_t path) {
  if (state_.is_receiver_closed) return;
  const ModelPath& both = state_.paths[path];
  for (std::uint8_t line = 0; line < model_.options().lines; ++line) {
    if (both.notices[line] == 0) continue;
    add(
        "receiver polls", path, [=](ModelWorld& world) { world.poll_notices(path, line); },
        StepSort::kProgress, line);
  }
  if (may_be_drained(both.receiver, both.data.front().chunks != 0) && has_room(state_.to_sender)) {
    add("receiver is drained", path, [=](ModelWorld& world) { world.drain(false, path); });
  }
  list_grants(path);
  list_making(false, path);
  list_receiver_failures(path);
  list_ports(false, path, ModelFault::kReceiverPort);
}

void ModelSteps::list_grants(std::uint8_t path) {
  const ModelPath& both = state_.paths[path];
  if (!both.receiver.may_grant || both.grants.back().number != 0) return;
  const auto grant = [&](const char* name, std::uint8_t line) {
    add(
        name, path, [=](ModelWorld& world) { world.grant(path, line); }, StepSort::kProgress, line);
  };
  if (ModelWorld(model_, state_).may_grant_next()) grant("receiver grants", state_.next);
  const auto lost = std::ranges::find(state_.carriers, kGrantLost);
  if (lost == state_.carriers.end()) return;
  grant("receiver grants again", static_cast<std::uint8_t>(lost - state_.carriers.begin()));
}

void ModelSteps::list_receiver_failures(std::uint8_t path) {
  const ModelPath& both = state_.paths[path];
  const PathState state = state_of(both.receiver);
  if (state != PathState::kUp && state != PathState::kAnswered) return;
  const bool is_unheard =
      std::ranges::count(state_.carriers, path) != 0 && both.receiver.live != both.sender.live;
  if (both.fault != ModelFault::kNone || is_unheard) {
    add_local("receiver notices", false, path, Kind::kFailed);
  } else if (state_.failures != 0) {
    add(
        "receiver is alarmed for no reason", path,
        [=](ModelWorld& world) {
          --world.state().failures;
          world.local(false, path, Kind::kFailed);
        },
        StepSort::kFault);
  }
}

}  // namespace beeline::test
