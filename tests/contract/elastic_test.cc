// SPDX-License-Identifier: Apache-2.0
//
// What NCCL calls when a job shrinks (a process has died, and the others go on), is revoked (all
// requests are given up), grows (a communicator is made beside others) or is suspended and resumed.
#include "tests/contract/flow.h"
#include "tests/contract/levels.h"
#include "tests/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr uint32_t kCommunicators = 100;
constexpr uint32_t kNewCommunicators = 16;
constexpr size_t kElasticBytes = 300'000;
constexpr size_t kSurvivorRank = 0;
constexpr size_t kVictimRank = 1;

// Both ends of two connections with the other process, one in each direction.
struct BothWays {
  Comm send;
  Comm recv;
};

BothWays connect_both_ways(Peer& peer, const Session& session) {
  Handle ours;
  const Comm listener = listen(session, 0, &ours);
  Handle theirs = peer.exchange(ours);
  BothWays pair;
  wait_until(
      [&] {
        if (!pair.send) {
          pair.send = Comm(session.net(), CommKind::kSend, try_connect(session, 0, theirs).comm);
        }
        if (!pair.recv) {
          pair.recv = Comm(session.net(), CommKind::kRecv, try_accept(session, listener).comm);
        }
        return pair.send && pair.recv;
      },
      "the connections");
  return pair;
}

}  // namespace

TEST_CASE("elastic: after a process has died, another closes with open requests and begins anew",
          "[contract][elastic]") {
  if (!kProcessesWork) return;
  const bool has_path = GENERATE(true, false);
  CAPTURE(has_path);
  const std::string port = "h0/" + fabric_facts().devices.front();
  const UndoneFaults undone(port);
  const auto begin_anew = [](uint32_t seed) {
    const Session session(Abi::kV12);
    must_carry(session.net(), link_to_self(session), seed);
  };
  const auto survivor = [&](Peer& peer) {
    begin_anew(0);  // the devices stay open from now on
    Levels before = levels();
    before.descriptors += kNewCommunicators / 2;  // a leak in each life would be more
    {
      const Session session(Abi::kV12);
      BothWays pair = connect_both_ways(peer, session);
      Buffer from(session.net(), pair.send, kElasticBytes);
      Buffer into(session.net(), pair.recv, kElasticBytes);
      const Request receive = irecv(session.net(), pair.recv, into.all());
      peer.meet();  // the other process has posted a receive
      const Request send = isend(session.net(), pair.send, from.all());
      if (!has_path) disturb(port, "down");
      peer.kill(kVictimRank);
      from.drop();
      into.drop();
      pair.send.close();
      pair.recv.close();
    }
    if (!has_path) disturb(port, "up");
    for (uint32_t seed = 1; seed <= kNewCommunicators; ++seed) begin_anew(seed);
    must_return_to(before);
  };
  const auto victim = [](Peer& peer) {
    const Session session(Abi::kV12);
    BothWays pair = connect_both_ways(peer, session);
    Buffer into(session.net(), pair.recv, kElasticBytes);
    const Request receive = irecv(session.net(), pair.recv, into.all());
    peer.meet();
    peer.receive<bool>(kSurvivorRank);  // never comes
  };
  run_two(PeerMode::kProcesses, survivor, victim);
}

TEST_CASE("elastic: communicators begin and end a hundred times beside one that lives",
          "[contract][elastic]") {
  if (!kProcessesWork) return;
  run_alone([] {
    const Session living(Abi::kV12);
    const Link link = link_to_self(living);
    Levels level{};
    for (uint32_t i = 0; i < kCommunicators; ++i) {
      {
        const Session next(Abi::kV12);
        must_carry(next.net(), link_to_self(next), i);
        must_carry(living.net(), link, i);
      }
      if (i == 2) level = levels();
    }
    level.descriptors += kCommunicators / 2;  // a leak each time would be more
    must_return_to(level);
  });
}
