// SPDX-License-Identifier: Apache-2.0
//
// Payload is written before its completion, and never after a deregistration. Messages have a
// single piece and go between two processes, so that the observer takes no part in the copying.
#include "tests/support/peer_group.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr size_t kPiece = 250'000;
constexpr size_t kLast = kPiece - 1;  // the last byte of a copy is written last
constexpr uint8_t kMark = 0x5A;

struct Party {
  Party(Peer& the_peer, const char* device)
      : peer(the_peer), end(device), mine(end.buffer(kPiece)) {
    reconnect();
    theirs = peer.exchange(mine.all());
  }
  void reconnect() {
    connect(end.qp, peer.exchange(address_of(end.qp)));
    peer.meet();
  }

  Peer& peer;
  Endpoint end;
  Buffer mine;
  Region theirs;
};

void send_in_rounds(Peer& peer, bool write, uint8_t rounds) {
  Party party(peer, "softnic0");
  for (uint8_t round = 1; round <= rounds; ++round) {
    party.mine.data()[kLast] = round;
    peer.meet();  // there is a receive
    BL_MUST_OK(post(party.end.qp, write ? write_imm_work(party.mine.all(), party.theirs, 0, round)
                                        : send_work(party.mine.all(), round)));
    must_complete(party.end.send_cq.get(), round);
    peer.meet();
  }
}

void receive_in_rounds(Peer& peer, uint8_t rounds) {
  Party party(peer, "softnic1");
  for (uint8_t round = 1; round <= rounds; ++round) {
    BL_MUST_OK(post(party.end.qp, recv_work(party.mine.all(), round)));
    peer.meet();
    must_complete(party.end.recv_cq.get(), round);
    BL_MUST(party.mine.peek(kLast) == round);
    peer.meet();
  }
}

void write_until_refused(Peer& peer, int rounds) {
  Party party(peer, "softnic0");
  for (int round = 0; round < rounds; ++round) {
    const Region target = peer.receive<Region>(1);
    ibv_wc wc{};
    do {
      BL_MUST_OK(post(party.end.qp, write_work(party.mine.all(), target)));
      wc = poll_one(party.end.send_cq.get());
    } while (wc.status == IBV_WC_SUCCESS);
    BL_MUST(wc.status == IBV_WC_REM_ACCESS_ERR);
    peer.meet();
    party.reconnect();
  }
}

void deregister_under_fire(Peer& peer, int rounds) {
  Party party(peer, "softnic1");
  for (int round = 0; round < rounds; ++round) {
    Buffer target = party.end.buffer(kPiece);
    target.data()[0] = kMark;
    peer.send(0, target.all());
    wait_until([&] { return target.peek(0) != kMark; }, "the first write");
    target.deregister();
    target.data()[kLast] = kMark;
    peer.meet();  // the writer has finished
    BL_MUST(target.peek(kLast) == kMark);
    party.reconnect();
  }
}

}  // namespace

TEST_CASE("placement: a receive completes when the data is there, not before", "[fault][softnic]") {
  const bool write = GENERATE(true, false);
  constexpr uint8_t kRounds = 100;
  const TestFabric fabric;
  run_peers(PeerMode::kProcesses, {[&](Peer& peer) { send_in_rounds(peer, write, kRounds); },
                                   [&](Peer& peer) { receive_in_rounds(peer, kRounds); }});
}

TEST_CASE("placement: after deregistration no data is written any more", "[fault][softnic]") {
  constexpr int kRounds = 100;
  const TestFabric fabric;
  run_peers(PeerMode::kProcesses, {[&](Peer& peer) { write_until_refused(peer, kRounds); },
                                   [&](Peer& peer) { deregister_under_fire(peer, kRounds); }});
}
