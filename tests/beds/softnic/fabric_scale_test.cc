// SPDX-License-Identifier: Apache-2.0
//
// Large fabrics: a ring of processes or threads, each of which sends verified data to the next one
// on every device.
#include <memory>

#include "tests/support/peer_group.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr std::uint32_t kDevices = 8;
constexpr std::size_t kSize = 40000;
constexpr std::uint32_t kRounds = 3;

// One device of a member: a queue pair to the next member of the ring and one from the previous.
struct Rail {
  explicit Rail(std::size_t number)
      : nic("softnic" + std::to_string(number)),
        to_next(make_qp(nic)),
        from_last(make_qp(nic)),
        out(nic.pd.get(), kSize),
        in(nic.pd.get(), kSize) {}

  Nic nic;
  QpPtr to_next;
  QpPtr from_last;
  Buffer out;
  Buffer in;
};

struct Card {
  QpAddress address;
  Region target;
};

std::uint32_t seed_of(std::size_t rank, std::size_t rail, std::uint32_t round) {
  return static_cast<std::uint32_t>((std::size_t{round} * 1000 + rank) * kDevices + rail);
}

void take_part(Peer& peer) {
  const std::size_t next = (peer.rank() + 1) % peer.count();
  const std::size_t last = (peer.rank() + peer.count() - 1) % peer.count();
  std::vector<std::unique_ptr<Rail>> rails;
  for (std::size_t i = 0; i < kDevices; ++i) rails.push_back(std::make_unique<Rail>(i));

  std::vector<Region> targets;
  for (const auto& rail : rails) {
    peer.send(last, Card{address_of(rail->from_last.get()), rail->in.all()});
    peer.send(next, Card{address_of(rail->to_next.get()), {}});
  }
  for (const auto& rail : rails) {
    const auto theirs = peer.receive<Card>(next);
    connect(rail->to_next.get(), theirs.address);
    targets.push_back(theirs.target);
    connect(rail->from_last.get(), peer.receive<Card>(last).address);
  }
  peer.meet();

  for (std::uint32_t round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < kDevices; ++i) {
      rails[i]->out.fill(seed_of(peer.rank(), i, round));
      BL_MUST_OK(post(rails[i]->from_last.get(), RecvWork{.wr_id = round}));
      BL_MUST_OK(post(rails[i]->to_next.get(),
                      write_imm_work(rails[i]->out.all(), targets[i], round, round)));
    }
    for (std::size_t i = 0; i < kDevices; ++i) {
      must_complete(rails[i]->nic.send_cq.get(), round);
      const ibv_wc wc = poll_one(rails[i]->nic.recv_cq.get());
      BL_MUST(wc.status == IBV_WC_SUCCESS && wc.imm_data == round && wc.byte_len == kSize);
      BL_MUST(rails[i]->in.has(seed_of(last, i, round)));
    }
    peer.meet();  // no buffer is overwritten before all were checked
  }
}

}  // namespace

TEST_CASE("fabric_scale: 64 processes with 8 devices each exchange data with one another",
          "[softnic][fabric][slow][scale]") {
  if (!kProcessesWork) return;  // a process has one host, so this takes processes
  constexpr std::uint32_t kHosts = 64;
  const TestFabric fabric(softnic::even_fabric(kHosts, kDevices));
  std::vector<PeerBody> bodies(kHosts, [](Peer& peer) {
    TestFabric::choose_host("h" + std::to_string(peer.rank()));
    take_part(peer);
  });
  run_peers(PeerMode::kProcesses, bodies, std::chrono::seconds(280));
  CHECK(softnic::find_participants(fabric.fabric()).slots.empty());
}

TEST_CASE("fabric_scale: 10,000 queue pairs each carry a message",
          "[softnic][fabric][slow][scale]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  constexpr std::size_t kPairs = 10000;
  constexpr std::uint32_t kWord = 8;
  const auto body = [](Peer& peer) {
    Nic nic("softnic0", kPairs);
    std::vector<QpPtr> qps;
    for (std::size_t i = 0; i < kPairs; ++i) {
      qps.push_back(make_qp(nic, {.send_depth = 2, .recv_depth = 2, .max_sge = 1}));
      connect(qps.back().get(), peer.exchange(address_of(qps.back().get())));
    }
    Buffer out(nic.pd.get(), kPairs * kWord);
    Buffer in(nic.pd.get(), kPairs * kWord);
    out.fill(static_cast<std::uint32_t>(peer.rank()));
    const Region target = peer.exchange(in.all());
    peer.meet();
    for (std::size_t i = 0; i < kPairs; ++i) {
      BL_MUST_OK(post(qps[i].get(),
                      write_work(out.part(i * kWord, kWord),
                                 target.moved(static_cast<std::int64_t>(i * kWord), kWord), i)));
      must_complete(nic.send_cq.get(), i);
    }
    peer.meet();
    BL_MUST(in.has(static_cast<std::uint32_t>(1 - peer.rank())));
  };
  run_peers(PeerMode::kProcesses, {body, body}, std::chrono::seconds(280));
  CHECK(softnic::find_participants(fabric.fabric()).slots.empty());
}

TEST_CASE("fabric_scale: 8 threads with 8 devices each exchange data with one another",
          "[softnic][fabric][slow][scale]") {
  const TestFabric fabric(softnic::even_fabric(1, kDevices));
  run_peers(PeerMode::kThreads, std::vector<PeerBody>(8, take_part), std::chrono::seconds(280));
}

TEST_CASE("fabric_scale: processes join and leave a hundred times",
          "[softnic][fabric][slow][scale]") {
  const PeerMode mode = peer_modes().back();
  const TestFabric fabric;
  for (int i = 0; i < 25; ++i) {
    run_peers(mode, std::vector<PeerBody>(4, [](Peer& peer) {
                Endpoint end(peer.rank() % 2 == 0 ? "softnic0" : "softnic1");
                connect(end.qp, address_of(end.qp));
                Buffer from = end.buffer(100);
                Buffer into = end.buffer(100);
                from.fill(static_cast<std::uint32_t>(peer.rank()));
                BL_MUST_OK(post(end.qp, write_work(from.all(), into.all(), 1)));
                must_complete(end.send_cq.get(), 1);
                BL_MUST(into.has(static_cast<std::uint32_t>(peer.rank())));
              }));
  }
  CHECK(softnic::find_participants(fabric.fabric()).slots.empty());
}
