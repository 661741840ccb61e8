// SPDX-License-Identifier: Apache-2.0
//
// Shared receive queues with many senders, while queue pairs come and go, and when a sender is
// killed. Every receive is used once, and none is lost.
#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "tests/beds/softnic/srq_scene.h"
#include "tests/support/peer_group.h"

using namespace beeline::test;

namespace {

constexpr std::size_t kClients = 4;
constexpr std::uint64_t kEach = 300;
constexpr std::size_t kSlot = 4096;
constexpr std::uint32_t kShared = 16;

// The I-th message of a client. Two of three are SENDs, whose bytes arrive in the receive.
bool is_send(std::uint64_t i) { return i % 3 != 2; }
std::uint32_t seed_of(std::size_t client, std::uint64_t i) {
  return static_cast<std::uint32_t>(client << 16 | i);
}
std::size_t size_of(std::uint64_t i) { return i * 37 % kSlot; }

void run_client(Peer& peer) {
  Endpoint end("softnic0");
  Buffer from = end.buffer(kSlot);
  peer.send(0, address_of(end.qp));
  connect(end.qp, peer.receive<QpAddress>(0));
  const auto target = peer.receive<Region>(0);
  for (std::uint64_t i = 0; i < kEach; ++i) {
    from.fill(seed_of(peer.rank(), i));
    const Region bytes = from.part(0, size_of(i));
    const auto imm = static_cast<std::uint32_t>(i);
    SendWork work =
        is_send(i) ? send_imm_work(bytes, imm, i) : write_imm_work(bytes, target, imm, i);
    const bool is_signaled = i % 4 == 3;
    BL_MUST_OK(post(end.qp, is_signaled ? work : unsignaled(work)));
    // Unsignaled work uses its memory until a later request has completed.
    if (!is_signaled) BL_MUST_OK(post(end.qp, nothing_work(i)));
    must_complete(end.send_cq.get(), i);
  }
  peer.meet();
}

void run_server(Peer& peer) {
  const Nic nic("softnic1", 1024);
  const SrqPtr srq = make_srq(nic.pd.get(), kShared);
  std::vector<QpPtr> qps;
  std::vector<Buffer> targets;
  std::map<std::uint32_t, std::size_t> clients;
  for (std::size_t client = 1; client <= kClients; ++client) {
    qps.push_back(make_qp_on(nic, srq.get()));
    targets.emplace_back(nic.pd.get(), kSlot);
    clients[qps.back()->qp_num] = client;
    connect(qps.back().get(), peer.receive<QpAddress>(client), kQuick);
    peer.send(client, address_of(qps.back().get()));
    peer.send(client, targets.back().all());
  }
  Buffer slots(nic.pd.get(), kShared * kSlot);
  std::map<std::uint64_t, std::size_t> posted;  // wr_id -> slot
  std::uint64_t next_id = 0;
  const auto post_slot = [&](std::size_t slot) {
    BL_MUST_OK(post(srq.get(), recv_work(slots.part(slot * kSlot, kSlot), next_id)));
    posted[next_id++] = slot;
  };
  for (std::size_t slot = 0; slot < kShared; ++slot) post_slot(slot);
  std::vector<std::uint64_t> next(kClients + 1, 0);
  for (std::uint64_t n = 0; n < kClients * kEach; ++n) {
    const ibv_wc wc = poll_one(nic.recv_cq.get());
    BL_MUST(wc.status == IBV_WC_SUCCESS);
    const auto receive = posted.find(wc.wr_id);
    BL_MUST(receive != posted.end());
    const std::size_t slot = receive->second;
    posted.erase(receive);
    const std::size_t client = clients.at(wc.qp_num);
    const std::uint64_t i = next[client]++;
    BL_MUST(wc.imm_data == i);
    BL_MUST(wc.byte_len == size_of(i));
    BL_MUST(wc.opcode == (is_send(i) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM));
    if (is_send(i)) {
      BL_MUST(has_pattern(slots.bytes(slot * kSlot, size_of(i)), seed_of(client, i)));
    }
    post_slot(slot);
  }
  BL_MUST(slots.guards_intact());
  BL_MUST(is_empty(nic.recv_cq.get()));
  peer.meet();
}

// Sends large messages until the process is killed.
void run_flood(Peer& peer) {
  peer.receive<bool>(0);
  Endpoint end("softnic0");
  Buffer from = end.buffer(kBig);
  std::fill_n(from.data(), kBig, std::uint8_t{1});
  peer.send(0, address_of(end.qp));
  connect(end.qp, peer.receive<QpAddress>(0), kQuick);
  for (;;) {
    BL_MUST_OK(post(end.qp, send_work(from.all())));
    BL_MUST(poll_one(end.send_cq.get()).status == IBV_WC_SUCCESS);
  }
}

enum class Farewell { kError, kReset, kDestroy };

// What happens to a receive that a dead process had taken.
void survive_floods(Peer& peer, Farewell farewell) {
  constexpr std::uint32_t kDepth = 4;
  const Nic nic("softnic1");
  const SrqPtr srq = make_srq(nic.pd.get(), kDepth);
  Buffer into(nic.pd.get(), kBig);
  std::uint64_t next_id = 0;
  std::set<std::uint64_t> completed;
  for (std::size_t client = 1; client < peer.count(); ++client) {
    QpPtr qp = make_qp_on(nic, srq.get());
    peer.send(client, true);
    const auto theirs = peer.receive<QpAddress>(client);
    connect(qp.get(), theirs, kQuick);
    into.data()[0] = 0;
    while (post(srq.get(), recv_work(into.all(), next_id)) == 0) ++next_id;
    peer.send(client, address_of(qp.get()));
    wait_until([&] { return into.peek(0) == 1; }, "a message");
    peer.kill(client);
    if (farewell == Farewell::kError) BL_MUST_OK(modify_state(qp.get(), IBV_QPS_ERR));
    if (farewell == Farewell::kReset) BL_MUST_OK(modify_state(qp.get(), IBV_QPS_RESET));
    if (farewell == Farewell::kDestroy) qp.reset();
    ibv_wc wc{};
    while (ibv_poll_cq(nic.recv_cq.get(), 1, &wc) == 1) {
      BL_MUST(farewell == Farewell::kError);
      BL_MUST(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR);
      BL_MUST(completed.insert(wc.wr_id).second);
    }
    for (const std::uint64_t wr_id : use_up(nic, srq.get(), next_id)) {
      BL_MUST(completed.insert(wr_id).second);
      next_id = std::max(next_id, wr_id + 1);
    }
  }
}

}  // namespace

TEST_CASE("srq: many senders use every receive once", "[softnic][srq]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  const TestFabric fabric;
  std::vector<PeerBody> bodies(1 + kClients, run_client);
  bodies[0] = run_server;
  run_peers(mode, bodies);
}

TEST_CASE("srq: queue pairs that come and go during traffic lose no receive", "[softnic][srq]") {
  constexpr std::size_t kPairs = 3;
  constexpr std::size_t kTurns = 150;
  const TestFabric fabric(0.001);
  const Nic a("softnic0", 4096);
  const Nic b("softnic1", 4096);
  const SrqPtr srq = make_srq(b.pd.get(), 8);
  Buffer from(a.pd.get(), 300'000);
  Buffer into(b.pd.get(), 300'000);
  std::vector<QpPtr> senders;
  std::vector<QpPtr> receivers;
  for (std::size_t i = 0; i < kPairs; ++i) {
    senders.push_back(make_qp(a));
    receivers.push_back(make_qp_on(b, srq.get()));
    connect_both(senders[i].get(), receivers[i].get(), kQuick);
  }
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> next_id{0};
  std::atomic<std::uint64_t> received{0};
  std::set<std::uint64_t> completed;
  bool twice = false;
  const auto collect = [&] {
    ibv_wc wc{};
    while (ibv_poll_cq(b.recv_cq.get(), 1, &wc) == 1) {
      twice = !completed.insert(wc.wr_id).second || twice;
      if (wc.status == IBV_WC_SUCCESS) ++received;
    }
  };
  std::thread filler([&] {
    while (!done) {
      collect();
      while (post(srq.get(), recv_work(into.all(), next_id)) == 0) ++next_id;
    }
  });
  std::thread flood([&] {
    ibv_wc wc{};
    for (std::uint64_t n = 0; !done; ++n) {
      ibv_qp* qp = senders[n % kPairs].get();
      // Some queue pairs are not connected at the moment and refuse.
      (void)post(qp, send_work(from.part(0, n % 4 == 0 ? 300'000 : 100), n));
      while (ibv_poll_cq(a.send_cq.get(), 1, &wc) == 1) {
      }
    }
  });
  for (std::size_t turn = 0; turn < kTurns; ++turn) {
    ibv_qp* one = senders[turn % kPairs].get();
    ibv_qp* other = receivers[turn % kPairs].get();
    if (turn % 2 == 0) CHECK(modify_state(other, IBV_QPS_ERR) == 0);
    CHECK(modify_state(other, IBV_QPS_RESET) == 0);
    connect_both(one, other, kQuick);
    const std::uint64_t before = received;
    wait_until([&] { return received > before + 3; }, "traffic");
  }
  done = true;
  filler.join();
  flood.join();
  for (const QpPtr& qp : receivers) CHECK(modify_state(qp.get(), IBV_QPS_ERR) == 0);
  collect();
  senders.clear();
  receivers.clear();
  for (const std::uint64_t wr_id : use_up(b, srq.get(), next_id)) {
    twice = !completed.insert(wr_id).second || twice;
  }
  CHECK_FALSE(twice);
  CHECK(completed.size() > kTurns);
}

TEST_CASE("srq: a killed sender loses no receive", "[softnic][srq]") {
  if (!kProcessesWork) return;
  const auto farewell = GENERATE(Farewell::kError, Farewell::kReset, Farewell::kDestroy);
  const bool slowly = GENERATE(true, false);
  const TestFabric fabric(0.01);
  if (slowly) fabric.command("h0/softnic0", "rate=40M");
  std::vector<PeerBody> bodies(slowly ? 4 : 9, run_flood);
  bodies[0] = [farewell](Peer& peer) { survive_floods(peer, farewell); };
  run_peers(PeerMode::kProcesses, bodies);
}
