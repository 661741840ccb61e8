// SPDX-License-Identifier: Apache-2.0
#include "plugin/repair/engine.h"

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace beeline {
namespace {

using Command = RepairCommand::Kind;
using Event = RepairEvent::Kind;
using Path = PathEvent::Kind;

constexpr std::int64_t kMs = times::kNsPerMs;
constexpr std::int64_t kSec = times::kNsPerSec;

// An engine at a time that the test moves.
struct TimedEngine {
  explicit TimedEngine(const RepairEngine::Facts& facts) : engine(facts) {}

  std::vector<RepairCommand> take(RepairEvent event) {
    std::vector<RepairCommand> commands;
    for (const RepairCommand& command : engine.on(event, now)) commands.push_back(command);
    return commands;
  }
  std::vector<RepairCommand> take(Path kind, std::uint8_t path = 0, std::uint32_t generation = 0) {
    RepairEvent event = {.kind = Event::kOfPath, .path = path};
    event.of_path = {.kind = kind, .generation = generation};
    return take(event);
  }
  std::vector<RepairCommand> take(Event kind, std::uint8_t path = 0) {
    return take(RepairEvent{.kind = kind, .path = path});
  }
  std::vector<RepairCommand> look(bool is_fenced = false) {
    return take(RepairEvent{.kind = Event::kLook, .is_fenced = is_fenced});
  }
  std::vector<RepairCommand> own_port(bool is_active) {
    return take(RepairEvent{.kind = Event::kOwnPort, .is_active = is_active});
  }
  // From kUp to kClear. A sender makes the first attempt at once, which fails.
  void lose_path() {
    (void)take(Path::kFailed, 0, engine.status(0).generation);
    (void)take(Path::kPeerFenced, 0, engine.status(0).generation);
    (void)look(true);
    (void)take(Path::kQueuesFailed);
    REQUIRE(engine.status(0).state == PathState::kClear);
  }
  // A sender's path, from kMaking to kUp.
  void make_path(bool is_stand_in) {
    REQUIRE(engine.status(0).state == PathState::kMaking);
    const std::uint32_t generation = engine.status(0).generation;
    (void)take(Path::kQueuesMade);
    (void)take(Path::kAnswer, 0, generation);
    (void)take(Event::kConnected);
    (void)take(RepairEvent{.kind = Event::kJoined, .is_stand_in = is_stand_in});
    REQUIRE(engine.status(0).state == PathState::kUp);
  }

  RepairEngine engine;
  RepairEngine::Moment now = {.ns = 1000 * kSec};
};

RepairEngine::Facts one_path(bool is_sender, std::int64_t give_up_ns = 0) {
  return {.is_sender = is_sender, .limits = {.give_up_ns = give_up_ns}, .paths = 1};
}

bool has(const std::vector<RepairCommand>& commands, Command kind) {
  return std::ranges::any_of(commands, [kind](const auto& one) { return one.kind == kind; });
}
const RepairCommand* find(const std::vector<RepairCommand>& commands, PathAction action) {
  const auto found = std::ranges::find_if(commands, [action](const RepairCommand& one) {
    return one.kind == Command::kAct && one.action == action;
  });
  return found == commands.end() ? nullptr : &*found;
}

TEST_CASE(
    "engine: a comm that waits says so after 10 and 30 s and then each minute, until it goes on") {
  TimedEngine end(one_path(true));
  end.lose_path();
  const std::int64_t begin = end.now.ns;
  const auto says = [&](std::int64_t at_ns) {
    end.now.ns = begin + at_ns;
    return has(end.take(Event::kLookAtComm), Command::kSayWaiting);
  };
  CHECK(!says(0));
  CHECK(end.engine.due_ns(end.now) <= begin + 10 * kSec);
  CHECK(!says(10 * kSec - 1));
  CHECK(says(10 * kSec));
  CHECK(!says(30 * kSec - 1));
  CHECK(says(30 * kSec));
  CHECK(!says(60 * kSec - 1));
  CHECK(says(60 * kSec));
  CHECK(!says(60 * kSec + 1));
  CHECK(says(121 * kSec));
  CHECK(!says(180 * kSec - 1));
  end.now.ns = begin + 120 * kSec;
  CHECK(end.engine.outage_ns(end.now.ns) == 120 * kSec);
  (void)end.look();  // it is time for an attempt
  end.make_path(false);
  CHECK(!says(180 * kSec));
  end.lose_path();
  CHECK(!says(180 * kSec));  // another one begins
  CHECK(says(190 * kSec));
}

TEST_CASE("engine: a comm waits for as long as BEELINE_GIVE_UP_AFTER says, and for ever without") {
  TimedEngine limited(one_path(true, 5 * kSec));
  TimedEngine unlimited(one_path(true));
  const auto ends = [](TimedEngine& end, std::int64_t after_ns) {
    end.now.ns += after_ns;
    return has(end.take(Event::kLookAtComm), Command::kEndNoPath);
  };
  limited.lose_path();
  unlimited.lose_path();
  CHECK(!ends(limited, 0));
  CHECK(!ends(unlimited, 0));
  CHECK(!ends(limited, 5 * kSec - 1));
  CHECK(ends(limited, 1));
  CHECK(!ends(limited, kSec));  // it is said once
  CHECK(!ends(unlimited, 60'000 * kSec));
}

TEST_CASE("engine: a peer that says nothing about a failed path is not waited for without end") {
  RepairEngine::Facts facts = one_path(GENERATE(false, true));
  facts.limits.peer_ns = 20 * kSec;
  TimedEngine end(facts);
  const auto ends_after = [&](std::int64_t ns) {
    end.now.ns += ns;
    (void)end.look(true);
    return has(end.take(Event::kLookAtComm), Command::kEndMute);
  };
  (void)end.take(Path::kFailed);
  CHECK(!ends_after(0));
  CHECK(end.engine.status(0).state == PathState::kFenced);
  CHECK(!ends_after(20 * kSec - 1));
  end.now.has_channel = false;  // whether the peer is dead is not decided here
  CHECK(!ends_after(100 * kSec));
  end.now.has_channel = true;
  CHECK(!ends_after(kSec));
  CHECK(!ends_after(20 * kSec - 1));
  (void)end.take(Path::kPeerCannotFence);  // it lives
  CHECK(!ends_after(kSec));
  CHECK(!ends_after(20 * kSec - 1));
  CHECK(ends_after(1));
  CHECK(!ends_after(60 * kSec));  // it is said once
}

TEST_CASE("engine: a sender offers at once, and then ever less often") {
  TimedEngine end(one_path(true));
  (void)end.take(Path::kFailed);
  (void)end.take(Path::kPeerFenced);
  CHECK(find(end.look(true), PathAction::kMakeQueues) != nullptr);
  std::vector<std::int64_t> waited_ms;
  for (int i = 0; i < 8; ++i) {
    (void)end.take(Path::kQueuesFailed);
    const std::int64_t since = end.now.ns;
    while (find(end.look(), PathAction::kMakeQueues) == nullptr) {
      end.now.ns = std::max(end.now.ns + 1, end.engine.due_ns(end.now));
    }
    waited_ms.push_back((end.now.ns - since) / kMs);
  }
  CHECK(waited_ms == std::vector<std::int64_t>{100, 200, 400, 800, 1600, 3200, 5000, 5000});
}

TEST_CASE("engine: a path that was missing is tried ever less often, until a port becomes active") {
  RepairEngine::Facts facts = one_path(true);
  facts.path[0].status.state = PathState::kClear;
  TimedEngine end(facts);
  CHECK(end.engine.due_ns(end.now) <= end.now.ns);
  CHECK(find(end.look(), PathAction::kMakeQueues) != nullptr);
  const auto waits_s = [&] {
    const std::int64_t since = end.now.ns;
    (void)end.take(Path::kQueuesFailed);
    while (find(end.look(), PathAction::kMakeQueues) == nullptr) {
      end.now.ns = std::max(end.now.ns + 1, end.engine.due_ns(end.now));
    }
    return (end.now.ns - since) / kSec;
  };
  for (const std::int64_t seconds : {1, 2, 4, 8, 16, 32, 60, 60}) CHECK(waits_s() == seconds);
  (void)end.take(Path::kQueuesFailed);
  (void)end.own_port(true);
  CHECK(find(end.look(), PathAction::kMakeQueues) != nullptr);
  CHECK(waits_s() == 0);
  CHECK(waits_s() == 1);
  end.make_path(false);
  // From now on it is like any other.
  end.lose_path();
  CHECK(end.engine.due_ns(end.now) - end.now.ns == 100 * kMs);
}

TEST_CASE("engine: a path goes back to its own device once that has been well for a while") {
  TimedEngine end(one_path(true));
  end.now.has_standby = true;
  end.lose_path();
  (void)end.own_port(false);
  (void)end.take(Event::kLookAtComm);
  end.now.ns += kSec;
  const auto called = end.take(Event::kLookAtComm);
  const RepairCommand* const make = find(called, PathAction::kMakeQueues);
  REQUIRE(make != nullptr);
  CHECK(make->may_stand_in);
  end.make_path(true);

  const auto well_for = [&] {  // until it goes back
    CHECK(has(end.look(), Command::kAskOwnPort));
    (void)end.own_port(true);
    const std::int64_t since = end.now.ns;
    std::vector<RepairCommand> commands;
    do {
      end.now.ns += kSec;
      CHECK(has(end.look(), Command::kAskOwnPort));
      commands = end.own_port(true);
    } while (!has(commands, Command::kPrepare));
    const auto prepare = std::ranges::find(commands, Command::kPrepare, &RepairCommand::kind);
    CHECK(!prepare->keeps_device);
    CHECK(prepare->generation == end.engine.status(0).generation + 1);
    CHECK(end.engine.status(0).state == PathState::kUp);
    return (end.now.ns - since) / kSec;
  };
  CHECK(well_for() == 5);
  SECTION("it does, when the new queue pairs are connected") {
    CHECK(has(end.take(Event::kPrepared), Command::kMove));
    (void)end.take(Path::kFailed);
    (void)end.take(Path::kPeerFenced, 0, end.engine.status(0).generation);
    CHECK(find(end.look(true), PathAction::kMakeQueues) != nullptr);  // without a delay
  }
  SECTION("it does not reach the peer, and the next time has to be longer") {
    CHECK(has(end.take(Event::kNotPrepared), Command::kDropPrepared));
    end.now.ns += kSec;
    CHECK(well_for() == 10);
  }
  SECTION("the same, if nothing is heard of them") {
    end.now.ns = end.engine.due_ns(end.now) + times::kLongestMoveNs;
    CHECK(has(end.take(Event::kLookAtComm), Command::kDropPrepared));
    CHECK(well_for() == 10);
  }
  SECTION("the path fails meanwhile") {
    (void)end.take(Path::kFailed);
    CHECK(!has(end.take(Event::kPrepared), Command::kMove));
  }
}

TEST_CASE("engine: what the connection manager connects is prepared before it is offered") {
  RepairEngine::Facts facts = one_path(true);
  facts.path[0].is_by_cm = true;
  TimedEngine end(facts);
  const auto prepares = [](const std::vector<RepairCommand>& commands) {
    CHECK(find(commands, PathAction::kMakeQueues) == nullptr);
    return has(commands, Command::kPrepare);
  };
  (void)end.take(Path::kFailed);
  (void)end.take(Path::kPeerFenced);
  CHECK(prepares(end.look(true)));
  CHECK(!prepares(end.take(Path::kWell)));  // it is under way
  SECTION("and then offered") {
    CHECK(find(end.take(Event::kPrepared), PathAction::kMakeQueues) != nullptr);
    CHECK(find(end.take(Path::kQueuesMade), PathAction::kSendOffer) != nullptr);
    (void)end.take(Path::kNotNow, 0, 1);  // in vain
    CHECK(end.engine.status(0).state == PathState::kClear);
  }
  SECTION("in vain") { CHECK(has(end.take(Event::kNotPrepared), Command::kDropPrepared)); }
  SECTION("without an answer") {
    end.now.ns += times::kLongestPrepareNs;
    CHECK(has(end.take(Event::kLookAtComm), Command::kDropPrepared));
  }
  CHECK(!prepares(end.look()));
  end.now.ns += 100 * kMs;
  CHECK(prepares(end.look()));
}

TEST_CASE("engine: a receiver asks for the move, and paths that change their device go together") {
  TimedEngine receiver(one_path(false));
  (void)receiver.take(Path::kFailed);
  (void)receiver.take(Path::kPeerFenced);
  (void)receiver.look(true);
  (void)receiver.take(Path::kOffer, 0, 1);
  (void)receiver.take(Event::kConnected);
  (void)receiver.take(RepairEvent{.kind = Event::kJoined, .is_stand_in = true});
  (void)receiver.look();
  (void)receiver.own_port(true);
  receiver.now.ns += 5 * kSec;
  (void)receiver.look();
  CHECK(has(receiver.own_port(true), Command::kAskToMove));

  RepairEngine::Facts facts = one_path(true);
  facts.paths = 2;
  facts.path[1].rail = 1;
  TimedEngine sender(facts);
  CHECK(has(sender.take(Event::kMoveAsked, 0), Command::kPrepare));
  CHECK(!has(sender.take(Event::kMoveAsked, 0), Command::kPrepare));
  CHECK(has(sender.take(Event::kMoveAsked, 1), Command::kPrepare));
  CHECK(!has(sender.take(Event::kPrepared, 1), Command::kMove));
  const auto moves = sender.take(Event::kPrepared, 0);
  CHECK(std::ranges::count(moves, Command::kMove, &RepairCommand::kind) == 2);
}

TEST_CASE("engine: a path that fails often is made anew later each time, if another works") {
  RepairEngine::Facts facts = one_path(true);
  facts.paths = 2;
  facts.path[1].rail = 1;
  TimedEngine end(facts);
  const auto fail_and_make = [&]() -> std::int64_t {  // in how many seconds
    (void)end.take(Path::kFailed, 0, end.engine.status(0).generation);
    (void)end.take(Path::kPeerFenced, 0, end.engine.status(0).generation);
    const std::int64_t since = end.now.ns;
    (void)end.look(true);
    // That both ports work does not end the wait.
    (void)end.own_port(true);
    (void)end.take(Path::kWell, 0, end.engine.status(0).generation);
    while (end.engine.status(0).state != PathState::kMaking) {
      end.now.ns = std::max(end.now.ns + 1, end.engine.due_ns(end.now));
      (void)end.look(true);
    }
    const std::int64_t waited_ns = end.now.ns - since;
    end.make_path(false);
    end.now.ns += kSec;
    return waited_ns / kSec;
  };
  std::vector<std::int64_t> waited;
  for (int i = 0; i < 9; ++i) waited.push_back(fail_and_make());
  CHECK(waited == std::vector<std::int64_t>{0, 0, 2, 4, 8, 16, 30, 30, 30});
  SECTION("until it has worked for a minute") {
    end.now.ns += times::kSteadyNs;
    CHECK(fail_and_make() == 0);
  }
  SECTION("at once, if no other works") {
    (void)end.take(Path::kFailed, 0, end.engine.status(0).generation);
    (void)end.take(Path::kPeerFenced, 0, end.engine.status(0).generation);
    CHECK(find(end.look(true), PathAction::kMakeQueues) == nullptr);
    CHECK(end.engine.held_ns(0) == 30 * kSec);
    (void)end.take(Path::kFailed, 1);
    (void)end.take(Event::kLookAtComm);
    CHECK(find(end.look(true), PathAction::kMakeQueues) != nullptr);
  }
}

TEST_CASE("engine: no device stands in beside one of the comm's own that works") {
  RepairEngine::Facts facts = one_path(true);
  facts.paths = 2;
  facts.path[1].rail = 1;
  TimedEngine end(facts);
  end.now.has_standby = true;
  (void)end.take(Path::kFailed, 1);
  (void)end.take(Path::kPeerFenced, 1);
  (void)end.take(RepairEvent{.kind = Event::kLook, .path = 1, .is_fenced = true});
  end.lose_path();
  (void)end.own_port(false);
  (void)end.take(Event::kLookAtComm);
  end.now.ns += kSec;
  (void)end.take(Event::kLookAtComm);
  end.make_path(true);
  const auto leaves_after = [&](std::int64_t ns) {
    end.now.ns += ns;
    return has(end.look(), Command::kBesideOwn);
  };
  for (int i = 0; i < 20; ++i) CHECK(!leaves_after(kSec));  // no other path works
  (void)end.take(Path::kQueuesMade, 1);
  (void)end.take(Path::kAnswer, 1, end.engine.status(1).generation);
  (void)end.take(Event::kConnected, 1);
  (void)end.take(Event::kJoined, 1);
  REQUIRE(end.engine.status(1).state == PathState::kUp);
  for (int i = 0; i < 5; ++i) CHECK(!leaves_after(kSec));  // the own one may flap
  CHECK(leaves_after(kSec));
}

TEST_CASE("engine: the time for flushed completions begins when the queue pair is in ERROR") {
  TimedEngine end(one_path(false));
  (void)end.take(Path::kFailed);
  end.now.ns += 900 * kMs;
  CHECK(find(end.look(), PathAction::kTakeReport) == nullptr);
  const RepairEvent in_error = {.kind = Event::kLook, .is_in_error = true};
  CHECK(find(end.take(in_error), PathAction::kTakeReport) == nullptr);
  end.now.ns += 199 * kMs;
  CHECK(find(end.take(in_error), PathAction::kTakeReport) == nullptr);
  end.now.ns += kMs;
  CHECK(find(end.take(in_error), PathAction::kTakeReport) != nullptr);
}

TEST_CASE("engine: a driver that does not fence within a second is taken for one that refuses") {
  TimedEngine end(one_path(false));
  (void)end.take(Path::kFailed);
  end.now.ns += kSec - 1;
  CHECK(find(end.look(), PathAction::kSendCannotFence) == nullptr);
  end.now.ns += 1;
  CHECK(find(end.look(), PathAction::kSendCannotFence) != nullptr);
  CHECK(find(end.look(), PathAction::kSendCannotFence) == nullptr);  // once
}

TEST_CASE("engine: if the devices of neither end can be fenced, the comm ends") {
  TimedEngine end(one_path(false));
  (void)end.take(Path::kFailed);
  CHECK(find(end.take(Path::kFenceRefused), PathAction::kSendCannotFence) != nullptr);
  end.now.ns += 10 * kSec;  // the peer's first message is late
  CHECK(!has(end.take(Path::kPeerCannotFence),
             Command::kEndNeitherFences));  // a removal may be coming
  SECTION("for good") {
    end.now.ns += kSec;
    CHECK(has(end.take(Path::kPeerCannotFence), Command::kEndNeitherFences));
  }
  SECTION("a device that is gone needs no fence") {
    (void)end.take(Event::kDeviceGone);
    end.now.ns += kSec;
    CHECK(!has(end.take(Path::kPeerCannotFence), Command::kEndNeitherFences));
    CHECK(find(end.look(), PathAction::kTakeReport) == nullptr);
    end.now.ns += 200 * kMs;
    CHECK(find(end.look(), PathAction::kTakeReport) != nullptr);
  }
}

TEST_CASE("engine: a device that refuses one queue pair after the other ends the only path") {
  TimedEngine end(one_path(true));
  const std::int64_t life = GENERATE(times::kBriefLifeNs - kMs, times::kBriefLifeNs);
  const bool is_by_device = GENERATE(true, false);
  const auto fail = [&] { return end.engine.count_failure(0, is_by_device, end.now.ns += life); };
  CHECK_FALSE(fail());  // the connection's first queue pair
  for (int former = 1; former <= 3; ++former) {
    end.lose_path();
    end.now.ns += 5 * kSec;
    (void)end.look();
    end.make_path(false);
    CHECK(fail() == (former == 3 && is_by_device && life < times::kBriefLifeNs));
  }
}

TEST_CASE("engine: a queue pair that cannot be joined is given up after two seconds") {
  TimedEngine end(one_path(true));
  end.lose_path();
  end.now.ns += 100 * kMs;
  (void)end.look();
  (void)end.take(Path::kQueuesMade);
  (void)end.take(Path::kAnswer, 0, 2);
  CHECK(has(end.take(Event::kConnected), Command::kJoin));
  CHECK(end.take(Event::kJoinLater).empty());
  CHECK(end.engine.needs_service());
  CHECK(has(end.look(), Command::kJoin));
  end.now.ns += 2 * kSec;
  CHECK(has(end.take(Event::kJoinLater), Command::kDiscardMade));
  CHECK(end.engine.status(0).state == PathState::kClear);
}

TEST_CASE("engine: a path that is suspended carries nothing until its failure is handled") {
  TimedEngine end({.is_sender = true, .paths = 2});
  CHECK(end.engine.has_other_path(1));
  end.engine.suspend(0);
  CHECK(!end.engine.is_up(0));
  CHECK(!end.engine.has_other_path(1));
  (void)end.take(Path::kFailed);
  CHECK(end.engine.status(0).state == PathState::kFencing);
}

// --- Equal events at equal times give equal commands ---

RepairEvent any_event(std::mt19937& random, std::size_t paths) {
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  RepairEvent event = {
      .kind = static_cast<Event>(below(static_cast<std::uint32_t>(Event::kLookAtComm) + 1)),
      .path = static_cast<std::uint8_t>(below(static_cast<std::uint32_t>(paths))),
      .of_path = {.kind = static_cast<Path>(below(PathEvent::kKinds)),
                  .generation = below(4),
                  .peer_has_report = below(2) == 1}};
  event.has_finished = below(8) == 0;
  event.is_fenced = below(2) == 1;
  event.is_active = below(2) == 1;
  event.is_gone = below(4) == 0;
  event.is_stand_in = below(2) == 1;
  return event;
}

// A schedule of random events, one at a time.
class Schedule {
 public:
  Schedule(std::uint32_t seed, const RepairEngine::Facts& facts)
      : random_(seed), paths_(facts.paths), end_(facts) {}

  void step() {
    end_.now.ns += static_cast<std::int64_t>(random_() % 400) * kMs;
    end_.now.has_standby = random_() % 2 == 0;
    const RepairEvent event = any_event(random_, paths_);
    for (const RepairCommand& command : end_.take(event)) said_.push_back(command);
    due_.push_back(end_.engine.due_ns(end_.now));
  }
  bool operator==(const Schedule& other) const {
    return said_ == other.said_ && due_ == other.due_;
  }
  std::size_t commands() const { return said_.size(); }

 private:
  std::mt19937 random_;
  std::size_t paths_;
  TimedEngine end_;
  std::vector<RepairCommand> said_;
  std::vector<std::int64_t> due_;
};

TEST_CASE("engine: what it says depends on its events and their times alone") {
  const std::uint32_t seed = GENERATE(range(1U, 51U));
  const RepairEngine::Facts facts = {.is_sender = seed % 2 == 0,
                                     .limits = {.give_up_ns = 20 * kSec, .peer_ns = 15 * kSec},
                                     .paths = 1 + seed % 8};
  Schedule alone(seed, facts);
  for (int i = 0; i < 500; ++i) alone.step();
  Schedule again(seed, facts);
  Schedule between(seed + 1000, {.is_sender = seed % 2 == 1, .paths = 3});
  for (int i = 0; i < 500; ++i) {
    again.step();
    between.step();
  }
  CHECK(alone == again);
  CHECK(alone.commands() > 100);
  CHECK(!(alone == between));
}

}  // namespace
}  // namespace beeline
