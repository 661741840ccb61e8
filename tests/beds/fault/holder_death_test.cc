// SPDX-License-Identifier: Apache-2.0
//
// `softnic run` is killed while its command runs: the command keeps the fabric alive.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>

#include "tests/beds/fault/link.h"
#include "tests/beds/fault/scenario_fabric.h"
#include "tests/support/launch.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline;
using namespace beeline::test;

namespace {

// A worker that was started by a `softnic run` of its own, and waits for a cue.
class OrphanWorker {
 public:
  OrphanWorker(const std::string& fabric, int role, UniqueFd pair) {
    auto [ours, its] = make_line();
    cue_.emplace(ours.release());
    parent_.emplace(
        Command{{BL_SOFTNIC, "run", "--name", fabric, "--host", "h" + std::to_string(role), "--",
                 BL_KILL_WORKER, std::to_string(role), "orphan"},
                {},
                {{its.get(), 3}, {pair.get(), 4}}});
    its.reset();
    const pid_t pid = cue_->receive<pid_t>();
    process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  }

  void lose_parent() {
    parent_->kill();
    CHECK(parent_->wait().was_killed());
  }
  void go() { cue_->send('g'); }
  bool did_well() { return cue_->receive<char>() == 'd'; }
  void kill() const {
    BL_MUST(::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0) == 0);
  }
  // It is not a child of this process, so it has no status to wait for.
  void wait_for_end() const {
    pollfd ended{process_.get(), POLLIN, 0};
    BL_MUST(::poll(&ended, 1, 30'000) == 1);
  }

 private:
  std::optional<Link> cue_;
  std::optional<Child> parent_;
  UniqueFd process_;
};

// Two workers whose parents are dead, on a fabric that no holder keeps.
struct Orphans {
  Orphans() {
    fabric.let_go();
    first.lose_parent();
    second.lose_parent();
  }

  TestFabric fabric{scenario_fabric()};
  std::pair<UniqueFd, UniqueFd> line = make_line();
  OrphanWorker first{fabric.name(), 0, std::move(line.first)};
  OrphanWorker second{fabric.name(), 1, std::move(line.second)};
};

}  // namespace

TEST_CASE("holder_death: orphans keep working, and the last to exit removes the fabric",
          "[fault][softnic]") {
  Orphans orphans;
  REQUIRE(fabric_exists(orphans.fabric.name()));
  orphans.first.go();
  orphans.second.go();
  CHECK(orphans.first.did_well());
  CHECK(orphans.second.did_well());
  orphans.first.wait_for_end();
  orphans.second.wait_for_end();
  CHECK_FALSE(fabric_exists(orphans.fabric.name()));
}

TEST_CASE("holder_death: after all were killed, a fabric of that name can be created again",
          "[fault][softnic]") {
  Orphans orphans;
  orphans.first.kill();
  orphans.second.kill();
  orphans.first.wait_for_end();
  orphans.second.wait_for_end();
  REQUIRE(fabric_exists(orphans.fabric.name()));
  {
    const softnic::FabricSpec spec = scenario_fabric();
    const auto holder = softnic::Holder::hold(orphans.fabric.name(), &spec);
    REQUIRE(holder);
    CHECK(softnic::find_participants(holder->fabric()).slots.empty());
  }
  CHECK_FALSE(fabric_exists(orphans.fabric.name()));
}
