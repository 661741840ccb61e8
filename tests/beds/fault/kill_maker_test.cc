// SPDX-License-Identifier: Apache-2.0
//
// A process is killed at each store that creates a fabric or gives a port a command. The next
// process must be able to do the same.
#include <fstream>
#include <iterator>

#include "tests/beds/fault/kill_sites.h"
#include "tests/beds/fault/scenario_fabric.h"
#include "tests/support/launch.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr const char* kPort = "h0/softnic1";

struct Change {
  const char* command;
  std::vector<const char*> before = {};  // commands that prepare the port
};

// Runs kill_maker. Returns whether it died at the site.
bool ran_into_death(const std::vector<std::string>& arguments, const KillOrder& order,
                    KillResult& result) {
  Command command{{BL_KILL_MAKER}, order.environment()};
  command.words.insert(command.words.end(), arguments.begin(), arguments.end());
  const Ending ending = Child(command).wait();
  if (!ending.was_killed() && !ending.is_good()) result.complaints.push_back(ending.said);
  return ending.was_killed();
}

KillResult make_a_fabric(const KillOrder& order) {
  KillResult result;
  const std::string name = TestFabric::fresh_name();
  result.died = ran_into_death({name}, order, result);
  if (!result.died && fabric_exists(name))
    result.complaints.emplace_back("the fabric is still there");
  KillResult again;
  (void)ran_into_death({name}, {}, again);
  result.complaints.insert(result.complaints.end(), again.complaints.begin(),
                           again.complaints.end());
  if (fabric_exists(name)) result.complaints.emplace_back("the second fabric is still there");
  return result;
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The fabric of one run, with a program that has the device open.
class Watched {
 public:
  explicit Watched(const Change& change) : fabric_(scenario_fabric()) {
    for (const char* text : change.before) fabric_.command(kPort, text);
    if (fabric_.fabric().header().devices[1].removals.load() % 2 == 0)
      context_ = open_device("softnic1");
  }

  const TestFabric& fabric() const noexcept { return fabric_; }

  // Everything that programs can see of the port.
  std::vector<std::string> state() const {
    const softnic::DeviceRecord& device = fabric_.fabric().header().devices[1];
    const softnic::PortRecord& port = device.ports[0];
    const std::string port_dir =
        fabric_.fabric().sysfs_root("h0") + "/class/infiniband/softnic1/ports/1/";
    return {"trouble " + std::to_string(port.faults.load()),
            "rate " + std::to_string(port.rate_bytes_s.load()),
            "latency " + std::to_string(port.latency_ns.load()),
            "error " + std::to_string(port.error_status.load()) + "@" +
                std::to_string(port.error_countdown.load()),
            "corrupt @" + std::to_string(port.corrupt_countdown.load()),
            "discard " + std::to_string(port.discard_bytes.load()) + "@" +
                std::to_string(port.discard_countdown.load()),
            "loss " + std::to_string(port.loss_ppm.load()),
            "jitter " + std::to_string(port.jitter_ns.load()),
            "black hole " + std::to_string(port.faults.load() & softnic::kFaultBlackHole),
            std::string("paused: ") + (port.paused_until_ns.load() != 0 ? "yes" : "no"),
            "gid 1: " + std::to_string(port.gids[1].state.load()) + " " +
                std::to_string(port.gids[1].low.load()),
            "removals " + std::to_string(device.removals.load()),
            "refuses " + std::to_string(device.refuses_to_break.load()),
            "refuses gpu " + std::to_string(device.refuses_gpu_memory.load()),
            contents(port_dir + "state"),
            contents(port_dir + "gids/1"),
            contents(port_dir + "pkeys/0"),
            std::string("events: ") +
                (context_ != nullptr && has_event(context_.get()) ? "some" : "none")};
  }

 private:
  TestFabric fabric_;
  ContextPtr context_;
};

// Gives the command, which may die, and then gives it again. The second must have its full effect.
KillResult command_a_port(const Change& change, const KillOrder& order) {
  KillResult result;
  std::vector<std::string> expected;
  {
    const Watched undisturbed(change);
    undisturbed.fabric().command(kPort, change.command);
    expected = undisturbed.state();
  }
  const Watched disturbed(change);
  result.died = ran_into_death({disturbed.fabric().name(), kPort, change.command}, order, result);
  disturbed.fabric().command(kPort, change.command);
  const std::vector<std::string> found = disturbed.state();
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == expected[i]) continue;
    result.complaints.push_back(found[i] + " instead of " + expected[i]);
  }
  return result;
}

}  // namespace

TEST_CASE("kill_points: the maker of a fabric may die at any store", "[fault][softnic]") {
  kill_everywhere("maker", 5, make_a_fabric);
}

TEST_CASE("kill_points: a process that commands a port may die at any store", "[fault][softnic]") {
  const auto change = GENERATE(
      Change{"down"}, Change{"up", {"down"}}, Change{"rate=1G"}, Change{"latency=5us"},
      Change{"error=retry_exc_err@3"}, Change{"corrupt@2"}, Change{"discard=64@2"},
      Change{"jitter=5us"}, Change{"loss=1%"}, Change{"blackhole"}, Change{"pause=100s"},
      Change{"resume", {"blackhole", "pause=100s"}}, Change{"gid=1:fe80::7"}, Change{"gid=1:none"},
      Change{"pkey=0x8001"}, Change{"remove"}, Change{"return", {"remove"}},
      Change{"reset", {"down", "rate=1G", "error=retry_exc_err@3", "corrupt@2", "discard=64@2"}},
      Change{"reset", {"loss=1%", "jitter=5us", "blackhole", "pkey=0x8001"}});
  kill_everywhere(std::string("command ") + change.command, 2,
                  [&](const KillOrder& order) { return command_a_port(change, order); });
}
