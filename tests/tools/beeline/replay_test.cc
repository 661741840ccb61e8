// SPDX-License-Identifier: Apache-2.0
//
// Tests how recordings of several processes are brought onto one time line, and what is told of
// them.
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/catch.h"
#include "tools/replay/messages.h"
#include "tools/replay/trace.h"

namespace beeline::replay {
namespace {

constexpr std::int64_t kUnixNs = 1'800'000'000 * kNsPerSec;

EventView event_at(std::int64_t ns, Event event, std::uint32_t arg = 0, std::uint64_t value = 0) {
  return {.time_ns = static_cast<std::uint64_t>(ns),
          .event = event,
          .rail = 0,
          .arg = arg,
          .value = value};
}

// A process on a host of its own, whose clock shows this at the moment kUnixNs.
Recording process_of(std::int64_t pid, std::int64_t clock_ns) {
  return {.host = "n" + std::to_string(pid),
          .build = "1",
          .pid = pid,
          .rank = static_cast<std::uint32_t>(pid),
          .opened_ns = clock_ns,
          .opened_unix_ns = kUnixNs};
}

SlotView connection_to(std::int64_t pid, ClockOffset clock = {}) {
  SlotView slot = {};
  slot.role = SlotRole::kSend;
  slot.state = SlotState::kReady;
  slot.device = "r0";
  slot.peer_host = "n" + std::to_string(pid);
  slot.peer_pid = static_cast<std::uint64_t>(pid);
  slot.peer_clock = clock;
  return slot;
}

TEST_CASE("replay: clocks are placed by way of the least error", "[tools]") {
  std::vector<Recording> all = {process_of(0, 1000), process_of(1, 5000), process_of(2, 9000),
                                process_of(3, 100)};
  // The unix time of process 2 is wrong by a second, and nothing was measured with process 3.
  all[2].opened_unix_ns += kNsPerSec;
  all[0].connections = {connection_to(1, {.ahead_ns = 4010, .error_ns = 50}),
                        connection_to(2, {.ahead_ns = 7000, .error_ns = 2000})};
  all[2].connections = {connection_to(1, {.ahead_ns = -4005, .error_ns = 60})};
  const std::vector<Placement> placed = place_clocks(all);
  CHECK(placed[0].shift_ns == kUnixNs - 1000);
  CHECK(placed[0].error_ns == 0);
  CHECK(placed[1].shift_ns == placed[0].shift_ns - 4010);
  CHECK(placed[1].error_ns == 50);
  CHECK(placed[2].shift_ns == placed[1].shift_ns - 4005);
  CHECK(placed[2].error_ns == 110);
  CHECK(placed[3].shift_ns == kUnixNs - 100);
  CHECK(placed[3].error_ns == std::nullopt);
}

TEST_CASE("replay: processes of a host have one clock", "[tools]") {
  std::vector<Recording> all = {process_of(0, 1000), process_of(1, 2000)};
  all[1].host = all[0].host;
  CHECK(place_clocks(all)[1].shift_ns == kUnixNs - 1000);
  CHECK(place_clocks(all)[1].error_ns == 0);
}

TEST_CASE("replay: an error that no channel can have is not believed", "[tools]") {
  std::vector<Recording> all = {process_of(0, 1000), process_of(1, 2000)};
  all[0].connections = {connection_to(1, {.ahead_ns = INT64_MIN, .error_ns = INT64_MAX})};
  CHECK(place_clocks(all)[1].error_ns == std::nullopt);
}

struct Told {
  explicit Told(std::vector<Recording> all) : recordings(std::move(all)) {}
  Story story() const {
    return {.recordings = recordings, .placements = placements, .timeline = timeline};
  }
  std::vector<Recording> recordings;
  std::vector<Placement> placements = place_clocks(recordings);
  std::vector<Entry> timeline = timeline_of(recordings, placements);
};

// It moves for two seconds, waits for three, and moves again.
SlotView moving_connection() {
  SlotView slot = connection_to(1);
  slot.opened_ns = 1000;
  slot.life = {event_at(1000, Event::kReady, 2)};
  slot.looks = {
      event_at(1000 + kNsPerSec, Event::kMoved, UINT32_MAX, 1000),
      event_at(1000 + 2 * kNsPerSec, Event::kMoved, 9, 11'000),
      event_at(1000 + 4 * kNsPerSec, Event::kWaits, BEELINE_WAIT_CREDIT, 1000 + 3 * kNsPerSec),
      event_at(1000 + 7 * kNsPerSec, Event::kMoved, 10, 12'500),
      event_at(1000 + 7 * kNsPerSec, Event::kWaits, BEELINE_WAIT_NOTHING)};
  return slot;
}

TEST_CASE("replay: what moved between two looks", "[tools]") {
  Recording process = process_of(0, 1000);
  process.connections = {moving_connection()};
  const Told told({process});
  std::string text;
  for (const Entry& entry : told.timeline) text += text_of(entry) + "\n";
  CHECK(text ==
        "ready, with 2 paths\n"
        "4294967295 messages, 1.0 kB in 1.00 s\n"
        "10 messages, 10.0 kB in 1.00 s\n"  // the counter begins again after 2^32
        "waits for a receive of the peer\n"
        "1 message, 1.5 kB in 1.00 s\n"
        "waits no longer\n");
  CHECK(told.timeline.front().unix_ns == kUnixNs);
  CHECK(time_text(told.timeline[3].unix_ns) == "08:00:03.000000");
}

TEST_CASE("replay: the first look of a full ring tells no rate", "[tools]") {
  Recording process = process_of(0, 1000);
  SlotView slot = connection_to(1);
  for (std::uint32_t i = 0; i < BEELINE_STATS_LOOKS; ++i) {
    slot.looks.push_back(
        event_at(1000 + i * kNsPerSec, Event::kMoved, i, std::uint64_t{i} * 2'000'000));
  }
  process.connections = {slot};
  const Told told({process});
  CHECK(text_of(told.timeline[0]) == "0 B in all");
  CHECK(text_of(told.timeline[1]) == "1 message, 2.0 MB in 1.00 s");
}

TEST_CASE("replay: the last messages", "[tools]") {
  SlotView slot = connection_to(1);
  slot.role = SlotRole::kReceive;
  slot.sizes.assign(4, 0);
  CHECK(last_messages(slot).empty());
  slot.counters[BEELINE_COUNTER_GRANTS] = 6;  // the last four are known
  slot.sizes = {7, BEELINE_STATS_UNDER_WAY, 5, 7};
  std::string text;
  for (const MessageRun& run : last_messages(slot)) text += text_of(run) + "\n";
  CHECK(text == "message 3: 5 bytes\nmessages 4 to 5: 7 bytes each\nmessage 6: awaited\n");
}

TEST_CASE("replay: a trace has a named row for each connection, and slices that are nested",
          "[tools]") {
  Recording process = process_of(0, 1000);
  process.connections = {moving_connection(), connection_to(9)};
  const auto trace = nlohmann::json::parse(trace_of(Told({process}).story()));
  CHECK(trace["otherData"]["start_unix_ns"] == std::to_string(kUnixNs));
  std::set<std::string> rows;
  std::vector<std::string> slices;
  for (const auto& event : trace["traceEvents"]) {
    const auto args = event.value("args", nlohmann::json::object());
    if (args.contains("name")) rows.insert(args["name"]);
    if (event["ph"] != "X") continue;
    slices.push_back(event["name"].get<std::string>() + " " + event["ts"].dump() + " " +
                     event["dur"].dump());
  }
  CHECK(rows == std::set<std::string>{"rank 0 (pid 0 on n0)", "to n1: (r0)", "to n9: (r0)"});
  CHECK(slices ==
        std::vector<std::string>{"1.0 kB (1.0 kB/s) 0.001 999999.998",
                                 "10.0 kB (10.0 kB/s) 1000000.001 999999.998",
                                 "waits for a receive of the peer 3000000.001 2999999.998",
                                 "1.5 kB (1.5 kB/s) 6000000.001 999999.998"});
}

TEST_CASE("replay: a wait that goes on is drawn until the last event of all", "[tools]") {
  Recording waiting = process_of(0, 1000);
  SlotView slot = connection_to(1);
  slot.looks = {event_at(3000, Event::kWaits, BEELINE_WAIT_DATA, 2000)};
  waiting.connections = {slot};
  Recording other = process_of(1, 1000);
  SlotView ended = connection_to(0);
  ended.life = {event_at(6000, Event::kPeerDied)};
  other.connections = {ended};
  const auto trace = nlohmann::json::parse(trace_of(Told({waiting, other}).story()));
  int slices = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++slices;
    CHECK(event["dur"] == 3.998);
  }
  CHECK(slices == 1);
}

}  // namespace
}  // namespace beeline::replay
