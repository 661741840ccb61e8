// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/unit/recovery_model_world.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "plugin/repair/path_machine.h"
#include "plugin/transfer/path_reports.h"
#include "tests/plugin/unit/recovery_model.h"

namespace beeline::test {
namespace {

using Kind = PathEvent::Kind;

template <class Slots>
void remove_oldest(Slots& slots) {
  std::rotate(slots.begin(), slots.begin() + 1, slots.end());
  slots.back() = {};
}

}  // namespace

// --- The sender ---

void ModelWorld::take_line() {
  state_.unsent[state_.taken] = all_of(state_.taken);
  ++state_.taken;
}

void ModelWorld::post(std::uint8_t path, std::uint8_t line, Chunks chunks) {
  ModelPath& both = state_.paths[path];
  state_.unsent[line] &= static_cast<Chunks>(~chunks);
  both.carried[line] |= chunks;
  const auto free = std::ranges::find(both.data, Chunks{0}, &ModelPath::Packet::chunks);
  *free = {.line = line, .chunks = chunks, .generation = both.sender.generation};
}

void ModelWorld::acknowledge(std::size_t line, Chunks chunks) {
  state_.acked[line] |= chunks;
  const bool is_finished = state_.acked[line] == all_of(line) && chunks != 0;
  claim(!is_finished || state_.memory[line] == all_of(line),
        "what the sender has finished lies in memory");
}

void ModelWorld::poll_acks(std::uint8_t path) {
  ModelPath& both = state_.paths[path];
  for (std::size_t line = 0; line < options().lines; ++line) {
    both.carried[line] &= static_cast<Chunks>(~both.acks[line]);
    acknowledge(line, both.acks[line]);
  }
  both.acks = {};
}

void ModelWorld::close_sender(bool says_goodbye) {
  for (std::size_t line = 0; line < options().lines; ++line) {
    claim(state_.memory[line] == all_of(line), "nothing is lost when the sender closes");
  }
  state_.is_sender_closed = true;
  state_.unsent = {};
  state_.ring = {};
  for (ModelPath& path : state_.paths) {
    path.sender = {.live = 0, .is_joined = false, .may_grant = false};
    path.carried = path.acks = {};
  }
  if (says_goodbye) send(true, {.kind = ModelMessage::kGoodbye});
}

// --- The receiver ---

void ModelWorld::grant(std::uint8_t path, std::uint8_t line) {
  ModelPath& both = state_.paths[path];
  state_.carriers[line] = path;
  if (line == state_.next) {
    ++state_.next;
    // The line that had this place is no longer in the ring.
    if (line >= options().ring) state_.carriers[line - options().ring] = kGrantArrived;
  }
  const auto free = std::ranges::find(both.grants, std::uint8_t{0}, &ModelPath::Grant::number);
  *free = {.number = static_cast<std::uint8_t>(line + 1), .generation = both.receiver.generation};
}

void ModelWorld::poll_notices(std::uint8_t path, std::uint8_t line) {
  Chunks& notices = state_.paths[path].notices[line];
  const Chunks chunks = notices;
  notices = 0;
  if (options().optional && state_.got[line] == all_of(line)) return;  // settled before it came
  claim((state_.got[line] & chunks) == 0, "no chunk is announced twice");
  state_.got[line] |= chunks;
  claim(state_.got[line] != all_of(line) || state_.memory[line] == all_of(line),
        "a message that is reported lies in memory");
}

void ModelWorld::drain(bool is_sender, std::uint8_t path) {
  if (is_sender) {
    poll_acks(path);
  } else {
    for (std::uint8_t line = 0; line < options().lines; ++line) {
      if (state_.paths[path].notices[line] != 0) poll_notices(path, line);
    }
  }
  local(is_sender, path, Kind::kDrained);
}

void ModelWorld::close_receiver() {
  state_.is_receiver_closed = true;
  state_.carriers = {};
  state_.is_reported_missing = {};
  for (ModelPath& path : state_.paths) {
    path.receiver = {.live = 0, .is_joined = false, .may_grant = false};
    path.notices = {};
  }
  send(false, {.kind = ModelMessage::kGoodbye});
}

// --- The NICs ---

void ModelWorld::place_data(std::uint8_t path) {
  ModelPath& both = state_.paths[path];
  const ModelPath::Packet& packet = both.data.front();
  const std::size_t line = packet.line;
  claim(state_.got[line] != all_of(line), "nothing is written after the receiver is done");
  claim(state_.acked[line] != all_of(line), "nothing is written after the sender is done");
  claim(!options().optional || line + 1 >= state_.next,
        "nothing is written into a buffer that was granted anew");
  state_.memory[line] |= packet.chunks;
  both.is_placed = true;
}

void ModelWorld::announce_data(std::uint8_t path) {
  ModelPath& both = state_.paths[path];
  const ModelPath::Packet packet = both.data.front();
  remove_oldest(both.data);
  both.is_placed = false;
  both.notices[packet.line] |= packet.chunks;
  const bool is_heard = both.fault == ModelFault::kNone &&
                        both.sender.live == packet.generation + 1 && !state_.is_sender_closed;
  if (is_heard) both.acks[packet.line] |= packet.chunks;
}

void ModelWorld::drop_data(std::uint8_t path) {
  remove_oldest(state_.paths[path].data);
  state_.paths[path].is_placed = false;
}

void ModelWorld::place_grant(std::uint8_t path) {
  ModelPath& both = state_.paths[path];
  const std::uint8_t number = both.grants.front().number;
  std::uint8_t& place = state_.ring[(number - 1U) % options().ring];
  claim(place <= number, "no line is written after its successor");
  place = number;
  remove_oldest(both.grants);
}

void ModelWorld::drop_grant(std::uint8_t path) { remove_oldest(state_.paths[path].grants); }

// --- The control channel ---

// A message that finds the channel full is lost, like one that was in it when it broke.
void ModelWorld::send(bool to_receiver, const ModelMessage& message) {
  ModelChannel& channel = to_receiver ? state_.to_receiver : state_.to_sender;
  const auto free = std::ranges::find(channel, std::uint8_t{0}, &ModelMessage::kind);
  if (free != channel.end()) *free = message;
}

ModelMessage ModelWorld::take_oldest(bool from_sender) {
  ModelChannel& channel = from_sender ? state_.to_receiver : state_.to_sender;
  const ModelMessage oldest = channel.front();
  remove_oldest(channel);
  return oldest;
}

void ModelWorld::deliver(bool to_receiver) {
  const ModelMessage message = take_oldest(to_receiver);
  const bool is_goodbye = message.kind == ModelMessage::kGoodbye;
  if (to_receiver ? state_.is_receiver_closed : state_.is_sender_closed) {
    // Whatever comes for a comm that is closed is answered, since the goodbye may have been lost.
    if (!is_goodbye && options().closed_answers)
      send(!to_receiver, {.kind = ModelMessage::kGoodbye});
    return;
  }
  if (is_goodbye) {
    // A sender closes when all is acknowledged: its receiver has all, or will find it.
    if (!to_receiver) close_sender(false);
    return;
  }
  event(!to_receiver, message.path,
        {.kind = static_cast<Kind>(message.kind),
         .generation = message.generation,
         .peer_has_report = message.peer_has_report},
        message.report);
}

}  // namespace beeline::test
