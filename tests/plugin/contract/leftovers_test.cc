// SPDX-License-Identifier: Apache-2.0
//
// Comms that come and go leave no descriptor and no thread behind.
#include <functional>

#include "tests/plugin/contract/flow.h"
#include "tests/plugin/contract/levels.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kLeftoversSize = 1U << 20;

// Runs many rounds. The first two, one for each device, create the objects that a process creates
// once. Some of these may still be closing when they are counted, but a leak in each round would be
// much larger.
void must_leave_nothing(const std::function<void(uint32_t)>& round) {
  const uint32_t rounds = repetitions(40, 10);
  round(0);
  round(1);
  const Levels level = levels();
  for (uint32_t i = 2; i < rounds; ++i) round(i);
  must_return_to(level);
}

}  // namespace

TEST_CASE("leftovers: nothing is left open after many connections", "[contract][leftovers]") {
  run_alone([&] {
    const Session lasting;
    const Link living = link_to_self(lasting);
    Memory memory(2 * kLeftoversSize);
    must_leave_nothing([&](uint32_t round) {
      const Session session;  // a communicator beside one that lives
      must_carry(lasting.net(), living, round);
      Handle handle{};
      const Comm without_connection = listen(session, 1, &handle);
      Link link = link_to_self(session, static_cast<int>(round % 2), 0);
      Mr from(session.net(), link.send, memory.at(), kLeftoversSize);
      Mr to(session.net(), link.recv, memory.at(kLeftoversSize), kLeftoversSize);
      memory.fill(0, kLeftoversSize, round);
      carry(session.net(), link, {memory.at(), kLeftoversSize, 0, from.raw()},
            {memory.at(kLeftoversSize), kLeftoversSize, 0, to.raw()});
      from.drop();
      to.drop();
      // The two ends close first in turn.
      (round % 2 == 0 ? link.send : link.recv).close();
      (round % 2 == 0 ? link.recv : link.send).close();
    });
  });
}

TEST_CASE("leftovers: nothing is left open after many connections between processes",
          "[contract][leftovers]") {
  if (!kProcessesWork) return;
  const auto play = [&](Peer& peer) {
    const Session session;
    must_leave_nothing([&](uint32_t round) {
      Comm comm = (peer.rank() + round) % 2 == 0 ? connect_to_peer(peer, session, 0)
                                                 : accept_from_peer(peer, session, 1);
      if (round % 3 == 0) peer.meet();
      comm.close();
    });
    peer.meet();
  };
  run_processes({play, play});
}

TEST_CASE("leftovers: a plugin that has nothing open keeps no thread", "[contract][leftovers]") {
  run_alone([&] {
    const Session session;
    const std::ptrdiff_t before = levels().threads;  // with the device's own
    for (int i = 0; i < 3; ++i) {
      link_to_self(session);
      wait_until([&] { return levels().threads <= before; }, "the plugin's threads to end");
    }
  });
}
