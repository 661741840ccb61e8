// SPDX-License-Identifier: Apache-2.0
//
// Several ranks in one process, whose threads call the plugin at the same time.
#include <thread>

#include "tests/plugin/contract/flow.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kThreadsSize = 20000;
constexpr uint32_t kThreadsMessages = 200;

// What each rank does, three times: connect to itself, move data, close.
void live(const Session& session, uint32_t rank) {
  Net& net = session.net();
  for (int life = 0; life < 3; ++life) {
    const Link link = link_to_self(session, static_cast<int>(rank % 2), life % 2);
    Buffer from(net, link.send, kThreadsSize);
    Buffer to(net, link.recv, kThreadsSize);
    for (uint32_t i = 0; i < kThreadsMessages; ++i) {
      const size_t size = size_t{i} * 97 % kThreadsSize;
      from.fill(0, size, i * 100 + rank);
      to.expect(0, size, i * 100 + rank);
      Request receive = irecv(net, link.recv, to.all());
      Request send = isend(net, link.send, from.part(0, size));
      finish_both(send, receive);
      to.must_hold(0, size);
    }
    to.must_hold();
  }
}

void run_ranks(size_t count, const std::function<void(uint32_t)>& body) {
  std::vector<PeerBody> bodies(count,
                               [&](Peer& peer) { body(static_cast<uint32_t>(peer.rank())); });
  run_peers(PeerMode::kThreads, bodies);
}

}  // namespace

TEST_CASE("threads: ranks may share one session", "[contract][threads]") {
  run_alone([&] {
    const Session session;
    run_ranks(4, [&](uint32_t rank) { live(session, rank); });
  });
}

TEST_CASE("threads: devices may be asked for while communicators begin and end",
          "[contract][threads]") {
  run_alone([&] {
    const Session first;
    const Properties wanted = first.properties(0);
    run_ranks(4, [&](uint32_t rank) {
      if (rank % 2 == 0) {
        for (int life = 0; life < 4; ++life) {
          const Session session;
          live(session, rank);
        }
      }
      for (int i = 0; i < 2000; ++i) {
        BL_MUST(first.devices() == 2);
        BL_MUST(first.properties(0) == wanted);
      }
    });
  });
}

TEST_CASE("threads: all versions of the table may be used in one process", "[contract][threads]") {
  const std::vector<Abi> abis = every_abi();
  run_alone([&] {
    run_ranks(abis.size(), [&](uint32_t rank) {
      const Session session(abis[rank]);
      live(session, rank);
    });
  });
}
