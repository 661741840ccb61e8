// SPDX-License-Identifier: Apache-2.0
#include "tests/beds/fault/kill_run.h"

#include <filesystem>

#include "softnic/fabric/fabric.h"
#include "softnic/fabric/port_command.h"
#include "tests/beds/fault/scenario_fabric.h"
#include "tests/beds/fault/stale_slot.h"
#include "tests/support/launch.h"
#include "tests/support/must.h"
#include "tests/support/verbs_fixture.h"

namespace beeline::test {
namespace {

std::vector<std::string> files_of_processes(const softnic::Fabric& fabric) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fabric.dir())) {
    const std::string name = entry.path().filename();
    if (name.starts_with("arena.") || name.starts_with("ev.")) names.push_back(name);
  }
  return names;
}

class Run {
 public:
  Run(int side, const KillOrder& order) : side_(side), order_(order), fabric_(scenario_fabric()) {
    leave_stale_slot(fabric_.fabric());
    for (const char* port : {"h0/softnic2", "h1/softnic2"}) {
      fabric_.command(port, "corrupt@1");
      fabric_.command(port, "error=rem_op_err@2");
    }
  }

  KillResult result() {
    auto [pair_victim, pair_survivor] = make_line();
    auto [line_survivor, line_newcomer] = make_line();
    Child victim(worker(side_, "victim", {{pair_victim.get(), 3}}));
    Child survivor(
        worker(1 - side_, "survivor", {{pair_survivor.get(), 3}, {line_survivor.get(), 4}}));
    pair_victim.reset();
    pair_survivor.reset();
    line_survivor.reset();
    const Ending died = victim.wait();
    result_.died = died.was_killed();
    if (!died.was_killed() && !died.is_good()) complain("victim", died);
    Child newcomer(worker(side_, "newcomer", {{line_newcomer.get(), 4}}));
    line_newcomer.reset();
    for (auto& [who, child] : {std::pair{"survivor", &survivor}, {"newcomer", &newcomer}}) {
      const Ending ending = child->wait();
      if (!ending.is_good()) complain(who, ending);
      if (result_.died || ending.said.empty()) continue;
      complain(who, ending);  // it reported a lost peer, although none has died
    }
    look_for_leftovers();
    return result_;
  }

 private:
  Command worker(int role, const std::string& part,
                 const std::vector<std::pair<int, int>>& descriptors) const {
    Command command{{BL_KILL_WORKER, std::to_string(role), part}, {}, descriptors};
    if (part == "victim") command.environment = order_.environment();
    command.environment.emplace_back("LD_LIBRARY_PATH=");  // the worker is linked with its library
    command.environment.push_back("SOFTNIC_HOST=h" + std::to_string(role));
    return command;
  }

  void complain(const std::string& who, const Ending& ending) {
    result_.complaints.push_back(who + (ending.stuck ? " was stuck" : "") + ", wait status " +
                                 std::to_string(ending.status) + ": " + ending.said);
  }

  // The other processes have exited normally, which removes the files of dead ones.
  void look_for_leftovers() {
    for (const std::string& name : files_of_processes(fabric_.fabric())) {
      result_.complaints.push_back("left behind: " + name);
    }
    fabric_.let_go();
    for (const std::string& name : softnic::list_fabrics()) {
      if (name == fabric_.name()) result_.complaints.push_back("the fabric is still there");
    }
  }

  const int side_;
  const KillOrder& order_;
  TestFabric fabric_;
  KillResult result_;
};

}  // namespace

KillResult run_with_victim(int side, const KillOrder& order) { return Run(side, order).result(); }

}  // namespace beeline::test
