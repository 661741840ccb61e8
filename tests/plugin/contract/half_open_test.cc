// SPDX-License-Identifier: Apache-2.0
//
// Connections that were begun and never finished: a process may end, or unload the plugin and load
// it again, with any number of them.
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "tests/plugin/contract/flow.h"
#include "tests/plugin/contract/levels.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr int kStatus = 7;

// Leaves a listener without a peer, a connect that was begun, and a connection that was accepted
// but not returned by connect.
void leave_half_open(const Session& session) {
  Handle unused{};
  listen(session, 0, &unused).abandon();
  Handle begun{};
  Comm listener = listen(session, 0, &begun);
  BL_MUST(try_connect(session, 0, begun).result == ncclSuccess);
  Handle made{};
  Comm other = listen(session, 0, &made);
  // A connect that finds the control thread busy has not begun anything, and must be called again.
  // The later call may return the comm.
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

}  // namespace

TEST_CASE("half open: a process that ends in the middle of it all keeps its exit status",
          "[contract][half_open]") {
  if (!kProcessesWork || kSlowed) return;  // a leak checker would report these connections
  const bool quickly = GENERATE(false, true);
  CAPTURE(quickly);
  run_alone([&] {
    const pid_t child = fork();
    BL_MUST(child >= 0);
    if (child == 0) {
      auto* const session = new Session;
      leave_half_open(*session);
      // And a connection that is made, with a receive that nobody sends for.
      auto* const link = new Link(link_to_self(*session));
      auto* const buffer = new Buffer(session->net(), link->recv, 1000);
      (void)irecv(session->net(), link->recv, buffer->all());
      if (quickly) _exit(kStatus);
      std::exit(kStatus);
    }
    BL_MUST(wait_for_exit(child) == kStatus);
  });
}

TEST_CASE("half open: the plugin can be loaded and used again", "[contract][half_open]") {
  run_alone([&] {
    for (int i = 0; i < 4; ++i) {
      const Session session;  // loads the plugin, and unloads it at the end
      must_carry(session.net(), link_to_self(session), static_cast<uint32_t>(i));
      leave_half_open(session);
    }
  });
}
