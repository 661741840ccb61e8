// SPDX-License-Identifier: Apache-2.0
//
// Plans of `softnic chaos`: equal seeds give equal plans, every disturbance ends, no port has two
// at a time, and spared ports have none.
#include "softnic/faults/chaos_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "softnic/faults/script.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

using softnic::ChaosRequest;
using softnic::PlannedCommand;
using Plan = std::vector<PlannedCommand>;

constexpr const char* kPlanOfSeed7 =
    "@0.157088s  h0/softnic0:1  down\n"
    "@0.161306s  h0/softnic1  remove\n"
    "@0.167851s  h0/softnic1  return\n"
    "@0.344768s  h0/softnic1:1  blackhole\n";

constexpr std::uint64_t kSecond = 1'000'000'000;

std::vector<softnic::Disturbance> kinds(const std::string& text) {
  auto parsed = softnic::parse_disturbances(text);
  if (!parsed) FAIL(parsed.error().text);
  return *std::move(parsed);
}

ChaosRequest wish(std::uint64_t seed, const std::string& of_kinds = "") {
  ChaosRequest made{
      .seed = seed, .duration_ns = 20 * kSecond, .ports = {}, .kinds = kinds(of_kinds)};
  for (const char* device : {"h0/softnic0", "h0/softnic1", "h1/softnic0", "h1/softnic1"})
    made.ports.push_back({std::string(device) + ":1", device, true});
  return made;
}

std::string word_of(const std::string& command) {
  return command.substr(0, command.find_first_of("=@"));
}

bool is_end(const std::string& command) {
  static const std::set<std::string> kEnds{"up",       "resume",        "loss=0",
                                           "jitter=0", "reset",         "event=port_active",
                                           "return",   "refuse-err=off"};
  return kEnds.contains(command);
}

}  // namespace

TEST_CASE("fault_chaos: equal seeds give equal plans, different seeds different plans",
          "[softnic][fault]") {
  const Plan plan = softnic::plan_chaos(wish(7));
  CHECK(plan.size() > 100);
  CHECK(plan == softnic::plan_chaos(wish(7)));
  CHECK(plan != softnic::plan_chaos(wish(8)));
  // The exact plan, so that a seed means the same on every machine.
  CHECK(softnic::script_text({plan.begin(), plan.begin() + 4}) == kPlanOfSeed7);
}

TEST_CASE("fault_chaos: every disturbance ends, in order and within the time", "[softnic][fault]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::map<std::string, std::string> suffering;
    std::uint64_t last = 0;
    for (const PlannedCommand& next : softnic::plan_chaos(wish(seed,
                                                               "down,blackhole,pause,loss,"
                                                               "jitter,error,event,remove,"
                                                               "refuse-err,corrupt"))) {
      CHECK(next.at_ns >= last);
      CHECK(next.at_ns <= 20 * kSecond);
      last = next.at_ns;
      const std::string device = next.target.substr(0, next.target.find(':'));
      if (is_end(next.command)) {
        CHECK(suffering.erase(device) == 1);
      } else {
        INFO(seed << ": " << next.command << " beside " << suffering[device]);
        CHECK(suffering[device].empty());
        suffering[device] = next.command;
      }
    }
    CHECK(suffering.empty());
  }
}

TEST_CASE("fault_chaos: a plan has all requested kinds and no others", "[softnic][fault]") {
  std::set<std::string> words;
  for (const PlannedCommand& next : softnic::plan_chaos(wish(3, "down,loss,remove")))
    words.insert(word_of(next.command));
  CHECK(words == std::set<std::string>{"down", "up", "loss", "remove", "return"});
  words.clear();
  for (std::uint64_t seed = 1; seed <= 5; ++seed)
    for (const PlannedCommand& next : softnic::plan_chaos(wish(seed)))
      words.insert(word_of(next.command));
  CHECK(words == std::set<std::string>{"down", "up", "blackhole", "pause", "resume", "loss",
                                       "jitter", "error", "reset", "event", "remove", "return",
                                       "refuse-err"});
}

TEST_CASE("fault_chaos: errors of paths are none of a program", "[softnic][fault]") {
  std::set<std::string> statuses;
  for (const PlannedCommand& next : softnic::plan_chaos(wish(4, "path-error"))) {
    if (next.command.starts_with("error="))
      statuses.insert(next.command.substr(0, next.command.find('@')));
  }
  CHECK(statuses == std::set<std::string>{"error=retry_exc_err", "error=rnr_retry_exc_err",
                                          "error=loc_qp_op_err", "error=fatal_err",
                                          "error=resp_timeout_err", "error=general_err"});
}

TEST_CASE("fault_chaos: an unknown kind is reported with the known ones", "[softnic][fault]") {
  const auto parsed = softnic::parse_disturbances("down,flood");
  REQUIRE(!parsed);
  CHECK(
      parsed.error().text ==
      "\"flood\" is not a kind of disturbance; the kinds are down, blackhole, pause, loss, jitter, "
      "error, "
      "event, remove, refuse-err, corrupt and path-error");
}

TEST_CASE("fault_chaos: a device with a spared port is never disturbed as a whole",
          "[softnic][fault]") {
  ChaosRequest half = wish(5, "down,remove,refuse-err");
  half.ports = {{"h0/dual:2", "h0/dual", false}};
  for (const PlannedCommand& next : softnic::plan_chaos(half)) {
    CHECK(next.target == "h0/dual:2");
    CHECK((next.command == "down" || next.command == "up"));
  }
  CHECK(!softnic::plan_chaos(half).empty());
}

TEST_CASE("fault_chaos: a device is disturbed as a whole only while none of its ports is",
          "[softnic][fault]") {
  ChaosRequest dual = wish(5, "down,remove");
  dual.ports = {{"h0/dual:1", "h0/dual", true}, {"h0/dual:2", "h0/dual", true}};
  std::set<std::string> down;
  bool away = false;
  int removals = 0;
  for (const PlannedCommand& next : softnic::plan_chaos(dual)) {
    if (next.command == "down") {
      CHECK(!away);
      down.insert(next.target);
    } else if (next.command == "up") {
      down.erase(next.target);
    } else {
      CHECK(down.empty());
      CHECK(next.target == "h0/dual");
      away = next.command == "remove";
      removals += away ? 1 : 0;
    }
  }
  CHECK(removals > 0);
}

TEST_CASE("fault_chaos: a plan with nothing to do is empty", "[softnic][fault]") {
  ChaosRequest nothing = wish(1);
  nothing.duration_ns = 0;
  CHECK(softnic::plan_chaos(nothing).empty());
  nothing = wish(1);
  nothing.ports.clear();
  CHECK(softnic::plan_chaos(nothing).empty());
}

TEST_CASE("fault_chaos: a plan is a script, and playing it leaves the fabric clean",
          "[softnic][fault]") {
  const TestFabric fabric;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Plan plan = softnic::plan_chaos(wish(seed));
    const auto script = softnic::read_script(fabric.fabric(), softnic::script_text(plan), "plan");
    if (!script) FAIL(script.error().text);
    REQUIRE(script->size() == plan.size());
    for (std::size_t i = 0; i < plan.size(); ++i) CHECK((*script)[i].at_ns == plan[i].at_ns);
    CHECK(softnic::play(fabric.fabric(), *script, [](std::uint64_t) { return true; }) ==
          plan.size());
    for (std::uint32_t device = 0; device < 4; ++device) {
      const softnic::DeviceRecord& record = fabric.fabric().header().devices[device];
      CHECK(record.ports[0].faults.load() == 0);
      CHECK(record.refuses_to_break.load() == 0);
    }
  }
}
