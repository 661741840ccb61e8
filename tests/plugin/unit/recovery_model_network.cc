// SPDX-License-Identifier: Apache-2.0
//
// What ports, NICs, links and the control channel may do next, and which faults may happen.
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

}  // namespace

// --- Ports, NICs and links ---

void ModelSteps::list_ports(bool is_sender, std::uint8_t path, ModelFault at_this_port) {
  const ModelPath& both = state_.paths[path];
  const bool is_well = both.fault != at_this_port;
  const bool is_known = (is_sender ? both.sender : both.receiver).is_port_well == is_well;
  const ModelChannel& channel = is_sender ? state_.to_receiver : state_.to_sender;
  if (is_known || !has_room(channel)) return;
  add_local(is_well ? "port is well" : "port is not well", is_sender, path,
            is_well ? Kind::kPortWell : Kind::kPortNotWell);
}

void ModelSteps::list_nics(std::uint8_t path) {
  const ModelPath& both = state_.paths[path];
  const bool is_broken = both.fault != ModelFault::kNone;
  if (const ModelPath::Packet& packet = both.data.front(); packet.chunks != 0) {
    const bool is_received = both.receiver.live == packet.generation + 1;
    if (is_received && !both.is_placed) {
      add("data is placed", path, [=](ModelWorld& world) { world.place_data(path); });
    }
    if (is_received && both.is_placed) {
      add("data is announced", path, [=](ModelWorld& world) { world.announce_data(path); });
    }
    if (is_broken || !is_received || both.sender.live != packet.generation + 1) {
      add("data is dropped", path, [=](ModelWorld& world) { world.drop_data(path); });
    }
  }
  if (const ModelPath::Grant& grant = both.grants.front(); grant.number != 0) {
    const bool is_received = both.sender.live == grant.generation + 1;
    if (is_received) {
      add("grant is placed", path, [=](ModelWorld& world) { world.place_grant(path); });
    }
    if (is_broken || !is_received || both.receiver.live != grant.generation + 1) {
      add("grant is dropped", path, [=](ModelWorld& world) { world.drop_grant(path); });
    }
  }
  const bool heals = is_broken && !both.never_heals && !state_.is_sender_closed &&
                     state_of(both.sender) == PathState::kClear;
  if (!heals) return;
  add("path heals", path,
      [=](ModelWorld& world) { world.state().paths[path].fault = ModelFault::kNone; });
}

// --- The comm and its control channel ---

void ModelSteps::list_ends() {
  const auto has_all = [this](const ByLine& lines) {
    return std::equal(lines.begin(), lines.begin() + model_.options().lines,
                      model_.options().chunks.begin());
  };
  if (!state_.is_sender_closed) {
    const bool has_line = state_.taken < model_.options().lines &&
                          state_.ring[state_.taken % model_.options().ring] == state_.taken + 1;
    if (has_line) add("sender takes a line", 0, [](ModelWorld& world) { world.take_line(); });
    if (has_all(state_.acked) && has_room(state_.to_receiver)) {
      add("sender closes", 0, [](ModelWorld& world) { world.close_sender(true); });
    }
  }
  if (!state_.is_receiver_closed && has_all(state_.got) && has_room(state_.to_sender)) {
    add("receiver closes", 0, [](ModelWorld& world) { world.close_receiver(); });
  }
}

void ModelSteps::list_channel() {
  for (const bool to_receiver : {true, false}) {
    const ModelMessage& oldest = (to_receiver ? state_.to_receiver : state_.to_sender).front();
    if (oldest.kind == 0) continue;
    add(
        to_receiver ? "receiver hears" : "sender hears", oldest.path,
        [=](ModelWorld& world) { world.deliver(to_receiver); }, StepSort::kProgress, oldest.kind);
  }
  const bool late_to_receiver = state_.late_to == 1;
  if (state_.late_to == 0) return;
  if (!has_room(late_to_receiver ? state_.to_receiver : state_.to_sender)) return;
  add("a message comes late", state_.late.path, [to = late_to_receiver](ModelWorld& world) {
    world.send(to, world.state().late);
    world.state().late = {};
    world.state().late_to = 0;
  });
}

void ModelSteps::list_repeats() {
  for (std::uint8_t path = 0; path < model_.options().paths; ++path) {
    for (const bool is_sender : {true, false}) {
      if (is_sender ? state_.is_sender_closed : state_.is_receiver_closed) continue;
      const ModelPath& both = state_.paths[path];
      const ModelEnd& end = is_sender ? both.sender : both.receiver;
      const PathState state = state_of(end);
      const bool waits = (end.is_unfenced && !end.has_peer_report) || state == PathState::kFenced ||
                         state == PathState::kOffered || state == PathState::kAnswered;
      if (!waits) continue;
      add(
          is_sender ? "sender repeats" : "receiver repeats", path,
          [=](ModelWorld& world) { world.local(is_sender, path, Kind::kTimer); },
          StepSort::kRepeat);
    }
  }
}

// --- Faults ---

void ModelSteps::list_faults(std::uint8_t path) {
  if (state_.failures == 0 || state_.paths[path].fault != ModelFault::kNone) return;
  const auto add_fault = [&](const char* name, ModelFault fault) {
    add(
        name, path,
        [=](ModelWorld& world) {
          --world.state().failures;
          world.state().paths[path].fault = fault;
        },
        StepSort::kFault);
  };
  add_fault("link breaks", ModelFault::kLink);
  if (!model_.options().port_events) return;
  add_fault("sender's port fails", ModelFault::kSenderPort);
  add_fault("receiver's port fails", ModelFault::kReceiverPort);
}

void ModelSteps::list_channel_faults(bool to_receiver) {
  const ModelMessage oldest = (to_receiver ? state_.to_receiver : state_.to_sender).front();
  if (oldest.kind == 0) return;
  if (state_.lost != 0) {
    add(
        "a message is lost", oldest.path,
        [=](ModelWorld& world) {
          --world.state().lost;
          world.take_oldest(to_receiver);
        },
        StepSort::kFault, oldest.kind);
  }
  if (state_.late_left != 0 && state_.late_to == 0) {
    add(
        "a message will come once more", oldest.path,
        [=](ModelWorld& world) {
          --world.state().late_left;
          world.state().late = oldest;
          world.state().late_to = to_receiver ? 1 : 2;
        },
        StepSort::kFault, oldest.kind);
  }
}

}  // namespace beeline::test
