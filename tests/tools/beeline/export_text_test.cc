// SPDX-License-Identifier: Apache-2.0
//
// The text that Prometheus reads.
#include "common/base/clock.h"
#include "common/base/version.h"
#include "tests/support/catch.h"
#include "tools/export/exposition.h"
#include "tools/export/metrics.h"

namespace beeline::exporter {
namespace {

using Catch::Matchers::Contains;
using pages::Life;

constexpr std::int64_t kNow = 1000 * kNsPerSec;

TEST_CASE("export: a family has its help, its type and its samples", "[tools]") {
  Exposition out("n1");
  out.begin({.name = "b_total", .kind = Kind::kCounter, .help = "Of b."});
  out.add({{"device", "a:1"}}, std::uint64_t{18446744073709551615U});
  out.add({}, 0.25);
  out.begin({.name = "without_samples", .help = "Left out."});
  out.begin({.name = "c", .help = "Of c."});
  out.add({}, std::uint64_t{0});
  CHECK(out.text() == R"(# HELP b_total Of b.
# TYPE b_total counter
b_total{host="n1",device="a:1"} 18446744073709551615
b_total{host="n1"} 0.25
# HELP c Of c.
# TYPE c gauge
c{host="n1"} 0
)");
}

TEST_CASE("export: texts cannot leave their place", "[tools]") {
  Exposition out("a\"b\\c\nd");
  out.begin({.name = "x", .help = "a\\b\nc \"d\""});
  out.add({{"device", "\"} 1\nx{y=\""}}, std::uint64_t{1});
  CHECK(out.text() == R"(# HELP x a\\b\nc "d"
# TYPE x gauge
x{host="a\"b\\c\nd",device="\"} 1\nx{y=\""} 1
)");
}

TEST_CASE("export: numbers that are none", "[tools]") {
  Exposition out("n");
  out.begin({.name = "x"});
  out.add({}, std::numeric_limits<double>::infinity());
  out.add({}, -std::numeric_limits<double>::infinity());
  out.add({}, std::numeric_limits<double>::quiet_NaN());
  CHECK_THAT(out.text(), Contains("} +Inf\n") && Contains("} -Inf\n") && Contains("} NaN\n"));
}

SlotView busy(SlotState state, Wait wait, std::int64_t waited_s) {
  SlotView slot = {};
  slot.id = 1;
  slot.role = SlotRole::kReceive;
  slot.state = state;
  slot.device = "beeline_a";
  slot.waits_for = wait;
  if (wait != Wait::kNothing) {
    slot.waits_since_ns = static_cast<std::uint64_t>(kNow - waited_s * kNsPerSec);
  }
  slot.counters[static_cast<std::size_t>(Counter::kBytes)] = 500;
  slot.paths = {
      {.health = PathHealth::kUp,
       .bytes = 400,
       .failures = 0,
       .device = "a:1",
       .own_device = "a:1"},
      {.health = PathHealth::kDown,
       .bytes = 100,
       .failures = 2,
       .device = "b:1",
       .own_device = "b:1"},
      {.health = PathHealth::kUp, .bytes = 0, .failures = 1, .device = "a:1", .own_device = "c:1"}};
  return slot;
}

State state_of(std::vector<pages::Process> processes, Mode mode = Mode::kRepeats) {
  State state = {.host = "n1", .protocol = "2-3", .mode = mode, .now_ns = kNow};
  state.totals.add(processes);
  state.processes.all = std::move(processes);
  return state;
}

pages::Process watched(std::int64_t pid, std::vector<SlotView> connections,
                       Life life = Life::kRuns) {
  return {.pid = pid, .host = {}, .life = life, .connections = std::move(connections)};
}

TEST_CASE("export: waits are counted, and the longest is shown", "[tools]") {
  pages::Process listens = watched(5, {});
  listens.listeners = {busy(SlotState::kReady, Wait::kAccept, 8)};
  const std::string text =
      text_of(state_of({listens, watched(1, {busy(SlotState::kReady, Wait::kData, 3)}),
                        watched(2, {busy(SlotState::kReady, Wait::kData, 70)}),
                        watched(3, {busy(SlotState::kReady, Wait::kPath, -5)}),
                        watched(4, {busy(SlotState::kReady, Wait::kCredit, 99)}, Life::kEnded)}));
  CHECK_THAT(text, Contains("beeline_waiting_connections{host=\"n1\",reason=\"data\"} 2\n"));
  CHECK_THAT(text, Contains("beeline_longest_wait_seconds{host=\"n1\",reason=\"data\"} 70\n"));
  CHECK_THAT(text, Contains("beeline_longest_wait_seconds{host=\"n1\",reason=\"accept\"} 8\n"));
  // It began after the page was read.
  CHECK_THAT(text, Contains("beeline_longest_wait_seconds{host=\"n1\",reason=\"path\"} 0\n"));
  CHECK_THAT(text, Contains("beeline_waiting_connections{host=\"n1\",reason=\"credit\"} 0\n"));
  CHECK_THAT(text, !Contains("reason=\"nothing\""));
}

TEST_CASE("export: the cause of a hang has the job and the rank", "[tools]") {
  SlotView sends = busy(SlotState::kReady, Wait::kCredit, 70);
  sends.role = SlotRole::kSend;
  sends.peer_host = "n1";
  sends.peer_pid = 2;
  sends.number = sends.peer_number = 5;
  SlotView receives = sends;
  receives.role = SlotRole::kReceive;
  receives.waits_for = Wait::kNothing;
  receives.peer_pid = 1;
  std::vector<pages::Process> job = {watched(1, {sends}), watched(2, {receives})};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    job[rank].host = "n1";
    job[rank].rank = rank;
    job[rank].job = "48213.0";
  }
  CHECK_THAT(text_of(state_of(job)),
             Contains("\nbeeline_hang_cause_seconds{host=\"n1\",nccl_job=\"48213.0\",rank=\"1\","
                      "culprit_host=\"n1\",reason=\"no-receive\"} 70\n"));
  SlotView lost = sends;
  lost.state = SlotState::kFailed;
  lost.life = {{.time_ns = static_cast<std::uint64_t>(kNow - 5 * kNsPerSec),
                .event = Event::kPeerDied,
                .rail = 0,
                .arg = 0,
                .value = 0}};
  job[0].connections.clear();
  job[0].failed = {lost};
  job[1].life = Life::kEnded;
  const char* const ended = "rank=\"1\",culprit_host=\"n1\",reason=\"ended\"} 5\n";
  CHECK_THAT(text_of(state_of(job)), Contains(ended));
  job[0].life = Life::kEnded;
  CHECK_THAT(text_of(state_of(job)), Contains(ended));
  job[0].failed[0].life[0].time_ns = static_cast<std::uint64_t>(kNow - 700 * kNsPerSec);
  CHECK_THAT(text_of(state_of(job)), !Contains("reason=\"ended\""));
}

TEST_CASE("export: states of processes, connections and paths", "[tools]") {
  State state = state_of({watched(1, {busy(SlotState::kReady, Wait::kNothing, 0)}),
                          watched(2, {busy(SlotState::kFailed, Wait::kNothing, 0)}, Life::kStopped),
                          watched(3, {busy(SlotState::kReady, Wait::kNothing, 0)}, Life::kEnded)});
  state.processes.left_out.owners[pages::Reason::kForbidden] = {1, 2};
  state.processes.left_out.owners[pages::Reason::kOfEnded] = {1};
  const std::string text = text_of(state);
  const std::string info = std::string("beeline_info{host=\"n1\",version=\"") + kVersion +
                           "\",revision=\"" + kRevision + "\",protocol=\"2-3\"} 1\n";
  for (const char* line : {
           info.c_str(),
           "beeline_processes{host=\"n1\",state=\"running\"} 1\n",
           "beeline_processes{host=\"n1\",state=\"stopped\"} 1\n",
           "beeline_processes{host=\"n1\",state=\"ended\"} 1\n",
           "beeline_unreadable_pages{host=\"n1\"} 2\n",
           "beeline_connections{host=\"n1\",direction=\"receive\",state=\"ready\"} 1\n",
           "beeline_connections{host=\"n1\",direction=\"receive\",state=\"failed\"} 1\n",
           "beeline_connections{host=\"n1\",direction=\"send\",state=\"connecting\"} 0\n",
           // The paths of a failed connection are not made anew.
           "beeline_paths{host=\"n1\",device=\"a:1\",state=\"up\"} 2\n",
           "beeline_paths{host=\"n1\",device=\"b:1\",state=\"down\"} 1\n",
           "beeline_paths{host=\"n1\",device=\"c:1\",state=\"moved\"} 1\n",
           "beeline_path_bytes_total{host=\"n1\",device=\"a:1\",direction=\"receive\"} 800\n",
           "beeline_path_failures_total{host=\"n1\",device=\"b:1\"} 4\n",
           "beeline_path_failures_total{host=\"n1\",device=\"c:1\"} 2\n",
           "nccl_device=\"beeline_a\",direction=\"receive\"} 1000\n",
       }) {
    CHECK_THAT(text, Contains(line));
  }
}

TEST_CASE("export: the help of a single look says that its totals can fall", "[tools]") {
  constexpr const char* kSays = "the number falls when one ends";
  CHECK_THAT(text_of(state_of({}, Mode::kOnce)), Contains(kSays));
  CHECK_THAT(text_of(state_of({}, Mode::kRepeats)), !Contains(kSays));
}

}  // namespace
}  // namespace beeline::exporter
