// SPDX-License-Identifier: Apache-2.0
//
// The table of a path's states: every event in every state, at both ends.
#include "plugin/repair/path_machine.h"

#include <algorithm>
#include <vector>

#include "tests/support/catch.h"

namespace beeline {
namespace {

using Kind = PathEvent::Kind;
using enum PathState;
using enum PathAction;

constexpr std::uint32_t kGeneration = 7;

// Of a message, compared with the generation of the end that gets it.
enum class Age : std::uint8_t { kOlder, kCurrent, kNewer };

std::uint32_t generation_of(Age age) { return kGeneration + static_cast<std::uint32_t>(age) - 1; }

enum class End : std::uint8_t { kSender, kReceiver, kBoth };

struct Row {
  End end;
  PathState state;
  Kind event;
  Age age;
  PathActions actions;
  PathState next;
};

// Whatever is not here is ignored. The peer of FENCED does not have our report, and ports are well,
// before the event.
const std::vector<Row>& table() {
  constexpr Age kOld = Age::kOlder;
  constexpr Age kNow = Age::kCurrent;
  constexpr Age kNew = Age::kNewer;
  static const std::vector<Row> rows = {
      {End::kBoth, kUp, Kind::kFailed, kNow, {kDetach, kMoveToError}, kFencing},
      {End::kBoth, kUp, Kind::kPortNotWell, kNow, {kDetach, kMoveToError}, kFencing},
      {End::kBoth,
       kUp,
       Kind::kPeerFenced,
       kNow,
       {kDetach, kMoveToError, kKeepPeerReport},
       kFencing},
      {End::kBoth, kUp, Kind::kPeerCannotFence, kNow, {kDetach, kMoveToError}, kFencing},
      {End::kSender, kUp, Kind::kAnswer, kNow, {kSendReady}, kUp},
      {End::kReceiver, kUp, Kind::kOffer, kNow, {kSendAnswer}, kUp},
      {End::kReceiver, kUp, Kind::kOffer, kNew, {kProtocolError}, kUp},

      {End::kBoth, kFencing, Kind::kDrained, kNow, {kTakeReport, kSendFenced}, kFenced},
      {End::kBoth, kFencing, Kind::kFenceRefused, kNow, {kSendCannotFence}, kFencing},
      {End::kBoth, kFencing, Kind::kPeerFenced, kNow, {kKeepPeerReport}, kFencing},
      {End::kReceiver, kFencing, Kind::kOffer, kNew, {kKeepPeerReport}, kFencing},

      {End::kBoth, kFenced, Kind::kTimer, kNow, {kSendFenced}, kFenced},
      {End::kBoth, kFenced, Kind::kPeerCannotFence, kNow, {kSendFenced}, kFenced},
      {End::kBoth, kFenced, Kind::kPeerFenced, kNow, {kKeepPeerReport, kResolve}, kClear},
      {End::kReceiver, kFenced, Kind::kOffer, kNew, {kKeepPeerReport, kResolve}, kClear},

      {End::kBoth, kClear, Kind::kPeerFenced, kNow, {kSendFenced}, kClear},
      {End::kBoth, kClear, Kind::kPeerCannotFence, kNow, {kSendFenced}, kClear},
      {End::kSender, kClear, Kind::kPeerCannotFence, kOld, {kSendFenced}, kClear},
      {End::kSender, kClear, Kind::kPeerFenced, kOld, {kSendFenced}, kClear},
      {End::kSender, kClear, Kind::kTimer, kNow, {kMakeQueues}, kMaking},
      {End::kSender, kClear, Kind::kWell, kNow, {kMakeQueues}, kMaking},
      {End::kReceiver, kClear, Kind::kOffer, kNow, {kSendNotNow}, kClear},
      {End::kReceiver, kClear, Kind::kOffer, kNew, {kMakeQueues}, kMaking},

      {End::kSender, kMaking, Kind::kQueuesMade, kNow, {kSendOffer}, kOffered},
      {End::kSender, kMaking, Kind::kQueuesFailed, kNow, {}, kClear},
      {End::kSender, kMaking, Kind::kPortNotWell, kNow, {kDestroyQueues}, kClear},
      {End::kReceiver, kMaking, Kind::kQueuesMade, kNow, {kSendAnswer}, kAnswered},
      {End::kReceiver, kMaking, Kind::kQueuesFailed, kNow, {kSendNotNow}, kClear},
      {End::kReceiver, kMaking, Kind::kPortNotWell, kNow, {kDestroyQueues, kSendNotNow}, kClear},
      {End::kReceiver, kMaking, Kind::kOffer, kNew, {kDestroyQueues, kMakeQueues}, kMaking},

      {End::kSender, kOffered, Kind::kAnswer, kNow, {kConnectQueues}, kProbing},
      {End::kSender, kOffered, Kind::kTimer, kNow, {kSendOffer}, kOffered},
      {End::kSender, kOffered, Kind::kWell, kNow, {kSendOffer}, kOffered},
      {End::kSender, kOffered, Kind::kNotNow, kNow, {kDestroyQueues}, kClear},
      {End::kSender, kOffered, Kind::kFailed, kNow, {kDestroyQueues}, kClear},
      {End::kSender, kOffered, Kind::kQueuesFailed, kNow, {kDestroyQueues}, kClear},
      {End::kSender, kOffered, Kind::kPortNotWell, kNow, {kDestroyQueues}, kClear},
      {End::kSender, kOffered, Kind::kPeerFenced, kNow, {kDestroyQueues, kSendFenced}, kClear},
      {End::kSender, kOffered, Kind::kPeerCannotFence, kNow, {kDestroyQueues, kSendFenced}, kClear},

      {End::kSender, kProbing, Kind::kProbed, kNow, {kSendReady}, kUp},
      {End::kSender, kProbing, Kind::kFailed, kNow, {kDestroyQueues}, kClear},
      {End::kSender, kProbing, Kind::kQueuesFailed, kNow, {kDestroyQueues}, kClear},
      {End::kSender, kProbing, Kind::kPortNotWell, kNow, {kDestroyQueues}, kClear},
      {End::kSender, kProbing, Kind::kPeerFenced, kNow, {kDestroyQueues, kSendFenced}, kClear},
      {End::kSender, kProbing, Kind::kPeerCannotFence, kNow, {kDestroyQueues, kSendFenced}, kClear},

      {End::kReceiver, kAnswered, Kind::kReady, kNow, {kAllowGrants}, kUp},
      {End::kReceiver, kAnswered, Kind::kTimer, kNow, {kSendAnswer}, kAnswered},
      {End::kReceiver, kAnswered, Kind::kOffer, kNow, {kSendAnswer}, kAnswered},
      {End::kReceiver,
       kAnswered,
       Kind::kOffer,
       kNew,
       {kDetach, kDestroyQueues, kMakeQueues},
       kMaking},
      {End::kReceiver, kAnswered, Kind::kFailed, kNow, {kDetach, kMoveToError}, kFencing},
      {End::kReceiver, kAnswered, Kind::kPeerCannotFence, kNow, {kDetach, kMoveToError}, kFencing},
      {End::kReceiver, kAnswered, Kind::kPortNotWell, kNow, {kDetach, kMoveToError}, kFencing},
      {End::kReceiver,
       kAnswered,
       Kind::kPeerFenced,
       kNow,
       {kDetach, kMoveToError, kKeepPeerReport},
       kFencing},
  };
  return rows;
}

const Row* row_of(bool is_sender, PathState state, Kind event, Age age) {
  const auto found = std::ranges::find_if(table(), [=](const Row& row) {
    const bool is_this_end = row.end == End::kBoth || (row.end == End::kSender) == is_sender;
    return is_this_end && row.state == state && row.event == event && row.age == age;
  });
  return found == table().end() ? nullptr : &*found;
}

// Whether the peer of this end sends such messages at all.
bool is_sent_to(bool is_sender, Kind message) {
  if (message == Kind::kPeerFenced || message == Kind::kPeerCannotFence) return true;
  return is_sender ==
         (message == Kind::kAnswer || message == Kind::kNotNow || message == Kind::kWell);
}

PathActions expected_actions(bool is_sender, PathState state, const PathEvent& event, Age age) {
  if (const Row* const row = row_of(is_sender, state, event.kind, age)) return row->actions;
  if (!event.is_message()) return {};
  if (!is_sent_to(is_sender, event.kind)) return {kProtocolError};
  // Only the sender counts generations up, and only an offer says so.
  const bool is_newer = age == Age::kNewer && event.kind != Kind::kOffer;
  return is_newer ? PathActions{kProtocolError} : PathActions{};
}

PathState expected_state(bool is_sender, PathState state, const PathEvent& event, Age age) {
  const Row* const row = row_of(is_sender, state, event.kind, age);
  return row == nullptr ? state : row->next;
}

std::vector<PathState> states_of(bool is_sender) {
  if (is_sender) return {kUp, kFencing, kFenced, kClear, kMaking, kOffered, kProbing};
  return {kUp, kFencing, kFenced, kClear, kMaking, kAnswered};
}

std::vector<Age> ages_of(const PathEvent& event) {
  if (!event.is_message()) return {Age::kCurrent};
  return {Age::kOlder, Age::kCurrent, Age::kNewer};
}

PathStatus in(PathState state, bool is_sender) {
  return {.state = state, .is_sender = is_sender, .generation = kGeneration};
}
PathEvent message(Kind kind, std::uint32_t generation = kGeneration) {
  return {.kind = kind, .generation = generation};
}
PathEvent local(Kind kind) { return {.kind = kind}; }

TEST_CASE("path machine: every event in every state does what the table says", "[unit][recovery]") {
  for (const bool is_sender : {true, false}) {
    for (const PathState state : states_of(is_sender)) {
      for (std::uint8_t kind = 0; kind < PathEvent::kKinds; ++kind) {
        PathEvent event = local(static_cast<Kind>(kind));
        for (const Age age : ages_of(event)) {
          event.generation = generation_of(age);
          CAPTURE(is_sender, int{static_cast<std::uint8_t>(state)}, int{kind},
                  int{static_cast<std::uint8_t>(age)});
          const PathTransition made = on_event(in(state, is_sender), event);
          CHECK(made.actions == expected_actions(is_sender, state, event, age));
          CHECK(made.next.state == expected_state(is_sender, state, event, age));
        }
      }
    }
  }
}

TEST_CASE("path machine: the state of the port is known in every state", "[unit][recovery]") {
  for (const bool is_sender : {true, false}) {
    for (const PathState state : states_of(is_sender)) {
      CAPTURE(is_sender, int{static_cast<std::uint8_t>(state)});
      const PathTransition down = on_event(in(state, is_sender), local(Kind::kPortNotWell));
      CHECK_FALSE(down.next.is_port_well);
      CHECK(on_event(down.next, local(Kind::kPortWell)).next.is_port_well);
    }
  }
}

TEST_CASE("path machine: the first of several reports of the peer counts", "[unit][recovery]") {
  PathStatus status = in(kFencing, false);
  const PathTransition first = on_event(status, message(Kind::kPeerFenced));
  CHECK(first.actions == PathActions{kKeepPeerReport});
  for (const PathEvent& again :
       {message(Kind::kPeerFenced), message(Kind::kOffer, kGeneration + 1)}) {
    const PathTransition second = on_event(first.next, again);
    CHECK(second.actions.empty());
    CHECK(second.next == first.next);
  }
}

TEST_CASE("path machine: an end that has the peer's report resolves when it is drained",
          "[unit][recovery]") {
  PathStatus status = in(kFencing, true);
  status.has_peer_report = true;
  const PathTransition drained = on_event(status, local(Kind::kDrained));
  CHECK(drained.next.state == kClear);
  CHECK(drained.actions == PathActions{kTakeReport, kResolve, kSendFenced});
  CHECK(drained.has_peer_report);
  std::vector<PathAction> order;
  drained.actions.each([&order](PathAction action) {
    order.push_back(action);
    return true;
  });
  CHECK(order == std::vector{kTakeReport, kResolve, kSendFenced});
}

TEST_CASE("path machine: two ends that are clear do not answer each other for ever",
          "[unit][recovery]") {
  const PathTransition asked = on_event(in(kClear, false), message(Kind::kPeerFenced));
  REQUIRE(asked.actions == PathActions{kSendFenced});
  CHECK(asked.has_peer_report);
  PathEvent answer = message(Kind::kPeerFenced, asked.message_generation);
  answer.peer_has_report = asked.has_peer_report;
  for (const bool is_sender : {true, false}) {
    CHECK(on_event(in(kClear, is_sender), answer).actions.empty());
  }
  const PathTransition waiting = on_event(in(kFenced, false), local(Kind::kTimer));
  CHECK_FALSE(waiting.has_peer_report);
}

TEST_CASE("path machine: a sender that has gone on answers about the old generation",
          "[unit][recovery]") {
  const PathTransition made =
      on_event(in(kClear, true), message(Kind::kPeerFenced, kGeneration - 2));
  CHECK(made.actions == PathActions{kSendFenced});
  CHECK(made.message_generation == kGeneration - 2);
  CHECK(made.next == in(kClear, true));
}

TEST_CASE("path machine: an offer is the next generation, and needs a port", "[unit][recovery]") {
  PathStatus status = in(kClear, true);
  status.has_peer_report = true;
  const PathTransition made = on_event(status, local(Kind::kTimer));
  CHECK(made.next.generation == kGeneration + 1);
  CHECK(made.message_generation == kGeneration + 1);
  CHECK_FALSE(made.next.has_peer_report);

  status.is_port_well = false;
  CHECK(on_event(status, local(Kind::kTimer)).actions.empty());
  CHECK(on_event(status, message(Kind::kWell)).actions.empty());
  CHECK(on_event(status, local(Kind::kPortWell)).next.state == kMaking);
}

TEST_CASE("path machine: a receiver answers with the generation of the offer", "[unit][recovery]") {
  PathStatus status = in(kClear, false);
  status.has_peer_report = true;
  const PathTransition made = on_event(status, message(Kind::kOffer, kGeneration + 3));
  CHECK(made.next.state == kMaking);
  CHECK(made.next.generation == kGeneration + 3);
  CHECK_FALSE(made.next.has_peer_report);
  const PathTransition answered = on_event(made.next, local(Kind::kQueuesMade));
  CHECK(answered.message_generation == kGeneration + 3);
}

TEST_CASE("path machine: a refused offer is named when the port is well again",
          "[unit][recovery]") {
  PathStatus status = in(kClear, false);
  status.is_port_well = false;
  const PathTransition refused = on_event(status, message(Kind::kOffer, kGeneration + 1));
  CHECK(refused.actions == PathActions{kSendNotNow});
  CHECK(refused.message_generation == kGeneration + 1);
  CHECK(refused.next.state == kClear);
  CHECK(refused.next.generation == kGeneration);

  const PathTransition well = on_event(refused.next, local(Kind::kPortWell));
  CHECK(well.actions == PathActions{kSendWell});
  CHECK(well.message_generation == kGeneration + 1);
  CHECK(on_event(well.next, local(Kind::kPortWell)).actions.empty());
  // The port fails while the queue pair is being made.
  PathStatus making = in(kMaking, false);
  const PathTransition given_up = on_event(making, local(Kind::kPortNotWell));
  CHECK(given_up.message_generation == kGeneration);
  CHECK(on_event(given_up.next, local(Kind::kPortWell)).message_generation == kGeneration);
  // Nothing was refused, but the sender may wait before it offers again.
  const PathTransition unasked = on_event(status, local(Kind::kPortWell));
  CHECK(unasked.actions == PathActions{kSendWell});
  CHECK(unasked.message_generation == kGeneration);
}

TEST_CASE("path machine: generations wrap around", "[unit][recovery]") {
  PathStatus status = in(kClear, false);
  status.generation = 0xffff'ffff;
  CHECK(on_event(status, message(Kind::kOffer, 0)).next.state == kMaking);
  status.state = kUp;
  CHECK(on_event(status, message(Kind::kPeerFenced, 0xffff'fffe)).actions.empty());
}

}  // namespace
}  // namespace beeline
