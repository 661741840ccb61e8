// SPDX-License-Identifier: Apache-2.0
//
// Connections that were begun and never finished: a process may end, unload the plugin and load it
// again with any number of them.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "tests/contract/flow.h"
#include "tests/contract/levels.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr int kStatus = 7;

// A listener that nobody calls, a connect that was begun, and one that was made and not taken.
void leave_half_open(const Session& session) {
  Handle unused{};
  listen(session, 0, &unused).abandon();
  Handle begun{};
  Comm listener = listen(session, 0, &begun);
  BL_MUST(try_connect(session, 0, begun).result == ncclSuccess);
  Handle made{};
  Comm other = listen(session, 0, &made);
  // A connect that finds the control thread busy has not begun anything, and the caller comes
  // again; here he may then find it done, and take it.
  Attempt taken{};
  Attempt accepted{};
  wait_until(
      [&] {
        if (taken.comm == nullptr) taken = try_connect(session, 0, made);
        for (int i = 0; i < 1000 && accepted.comm == nullptr; ++i) {
          accepted = try_accept(session, other);
          std::this_thread::yield();
        }
        return accepted.comm != nullptr;
      },
      "a connection");
  Comm(session.net(), CommKind::kRecv, accepted.comm).close();
  if (taken.comm != nullptr) Comm(session.net(), CommKind::kSend, taken.comm).close();
  listener.abandon();
  other.abandon();
}

int status_of(pid_t child) {
  int status = 0;
  try {
    wait_until([&] { return waitpid(child, &status, WNOHANG) == child; }, "the child to end");
  } catch (const MustError&) {
    kill(child, SIGKILL);
    throw;
  }
  BL_MUST(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("half open: a process that ends in the middle of it all keeps its exit status",
          "[contract][half_open]") {
  if (!kProcessesWork || kSlowed) return;  // a leak checker has its own opinion on this
  const Abi abi = GENERATE(from_range(main_abis()));
  const bool quickly = GENERATE(false, true);
  CAPTURE(abi, quickly);
  run_alone([&] {
    const pid_t child = fork();
    BL_MUST(child >= 0);
    if (child == 0) {
      auto* const session = new Session(abi);
      leave_half_open(*session);
      if (quickly) _exit(kStatus);
      std::exit(kStatus);
    }
    BL_MUST(status_of(child) == kStatus);
  });
}

TEST_CASE("half open: the plugin can be loaded and used again", "[contract][half_open]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    for (int i = 0; i < 4; ++i) {
      // Loaded with it, and unloaded.
      const Session session(abi);
      must_carry(session.net(), link_to_self(session), static_cast<uint32_t>(i));
      leave_half_open(session);
    }
  });
}
