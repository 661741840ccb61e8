// SPDX-License-Identifier: Apache-2.0
//
// A process that has used the plugin forks, as Python does. The child may exit by exit or by _exit,
// and its parent's connections keep working.
#include <signal.h>
#include <unistd.h>

#include "tests/contract/flow.h"
#include "tests/contract/forks.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kForkSize = 5000;
constexpr int kMessages = 20;

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
  const Way way = GENERATE(from_range(process_ways()));
  const Leave leave = GENERATE(Leave::kExit, Leave::kQuickly);
  CAPTURE(way, leave == Leave::kExit);
  run_flow(
      way,
      [&](Sender& end) {
        Buffer memory(end, kForkSize);
        for (int i = 0; i < kMessages; ++i) {
          memory.fill(0, kForkSize, static_cast<uint32_t>(i));
          Request request = end.send(memory.all());
          if (i % 5 == 0) fork_and_leave(leave);
          request.finish();
        }
      },
      [&](Receiver& end) {
        Buffer memory(end, kForkSize);
        for (int i = 0; i < kMessages; ++i) {
          Request request = end.receive(memory.all());
          if (i % 7 == 0) fork_and_leave(leave);
          request.finish();
          memory.expect(0, kForkSize, static_cast<uint32_t>(i));
          memory.must_hold();
        }
      });
}

TEST_CASE("fork: a child may close the comms of its parent, which keep working",
          "[contract][fork]") {
  if (!kProcessesWork) return;
  const Way way = GENERATE(from_range(process_ways()));
  CAPTURE(way);
  run_flow(
      way,
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
  const Way way = GENERATE(from_range(process_ways()));
  CAPTURE(way);
  run_loose_flow(
      way,
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
        poll_until_error(request, 2 * kPatience);
      });
}

TEST_CASE("fork: a process may leave without closing anything", "[contract][fork]") {
  if (!kProcessesWork) return;
  const Abi abi = GENERATE(from_range(main_abis()));
  const Leave leave = GENERATE(Leave::kExit, Leave::kQuickly);
  CAPTURE(abi, leave == Leave::kExit);
  run_alone([&] {
    const pid_t child = fork();
    BL_MUST(child >= 0);
    if (child == 0) {
      auto* const session = new Session(abi);
      auto* const link = new Link(link_to_self(*session));
      auto* const memory = new Memory(kForkSize);
      auto* const mr = new Mr(session->net(), link->recv, *memory);
      (void)irecv(session->net(), link->recv, Part{memory->at(), kForkSize, 0, mr->raw()});
      if (leave == Leave::kExit) std::exit(0);
      _exit(0);
    }
    must_end(child);
  });
}
