// SPDX-License-Identifier: Apache-2.0
//
// A process that has used the plugin forks, as Python does. The child may exit by exit or by _exit,
// and its parent's connections keep working.
#include <signal.h>
#include <unistd.h>

#include "tests/plugin/contract/flow.h"
#include "tests/plugin/contract/forks.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kForkSize = 5000;
constexpr uint32_t kMessages = 40;

// A process whose parent is gone, which nobody else kills.
class Orphan {
 public:
  explicit Orphan(pid_t pid) : pid_(pid) {}
  Orphan(const Orphan&) = delete;
  Orphan& operator=(const Orphan&) = delete;
  ~Orphan() { kill(pid_, SIGKILL); }

 private:
  pid_t pid_;
};

}  // namespace

TEST_CASE("fork: a child that exits does not disturb its parent", "[contract][fork]") {
  if (!kProcessesWork) return;
  const Leave leave = GENERATE(Leave::kExit, Leave::kQuickly);
  CAPTURE(leave == Leave::kExit);
  const auto fork_now_and_then = [&](uint32_t number) {
    if (number % 5 == 0) fork_and_leave(leave);
  };
  run_flow([&](Sender& end) { send_messages(end, kForkSize, kMessages, fork_now_and_then); },
           [&](Receiver& end) { receive_messages(end, kForkSize, kMessages, fork_now_and_then); });
}

TEST_CASE("fork: a child may close the comms of its parent, which keep working",
          "[contract][fork]") {
  if (!kProcessesWork) return;
  run_flow(
      [](Sender& end) {
        Buffer memory(end, kForkSize);
        memory.fill(0, kForkSize, 1);
        const pid_t child = fork();
        BL_MUST(child >= 0);
        if (child == 0) {
          const bool good = end.net().dereg_mr(end.comm.raw(), memory.mhandle()) == ncclSuccess &&
                            end.net().close_send(end.comm.raw()) == ncclSuccess &&
                            end.net().finalize(end.session.context()) == ncclSuccess;
          _exit(good ? 0 : 1);
        }
        must_end(child);
        end.send(memory.all()).finish();
      },
      [](Receiver& end) {
        Buffer memory(end, kForkSize);
        memory.expect(0, kForkSize, 1);
        end.receive(memory.all()).finish();
        memory.must_hold();
      });
}

TEST_CASE("fork: a child that lives on keeps nothing of its parent's alive", "[contract][fork]") {
  if (!kProcessesWork) return;
  run_loose_flow(
      [](Sender& end) {
        const pid_t child = fork();
        BL_MUST(child >= 0);
        if (child == 0) {
          alarm(120);  // in case nobody kills it
          pause();
          _exit(0);
        }
        end.peer.send(1, child);
        end.peer.meet();
      },
      [](Receiver& end) {
        const Orphan child(end.peer.receive<pid_t>(0));
        Buffer memory(end, kForkSize);
        Request request = end.receive(memory.all());
        end.peer.kill(0);
        // The child has copies of all its parent's sockets, which only an exec would have closed.
        poll_until_error(request);
      });
}
