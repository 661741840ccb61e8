// SPDX-License-Identifier: Apache-2.0
//
// What once went wrong between threads, processes and slow wires, and must not again. Most of these
// are races, so they try for a while.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/support/pages.h"
#include "tests/support/peer_group.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr uint8_t kPayload = 0xA5;
constexpr int kDestructions = 60;
constexpr size_t kStreamed = 256u << 10;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Lets another thread get ahead.
void dawdle(int turns) {
  static std::atomic<int> turned{0};
  for (int i = 0; i < turns; ++i) turned.fetch_add(1, std::memory_order_relaxed);
}

// Whoever destroys the object it is about waits until it is acknowledged.
ibv_async_event unacknowledged_event(ibv_context* context) {
  wait_until([&] { return has_event(context); }, "an asynchronous event");
  ibv_async_event event{};
  BL_MUST(ibv_get_async_event(context, &event) == 0);
  return event;
}

void stream_into_the_dying(Peer& peer) {
  const Nic nic("softnic0");
  Buffer from(nic.pd.get(), kStreamed);
  std::memset(from.data(), kPayload, kStreamed);
  for (int round = 0; round < kDestructions; ++round) {
    const QpPtr qp = make_qp(nic);
    connect(qp.get(), peer.exchange(address_of(qp.get())), {.retry_cnt = 0});
    peer.meet();
    const Region target = peer.receive<Region>(1);
    std::vector<SendWork> stream(40, unsignaled(write_work(from.all(), target)));
    stream.push_back(nothing_work(1));
    BL_MUST_OK(post_list(qp.get(), stream));
    poll_one(nic.send_cq.get());
    peer.meet();
  }
}

bool is_still_written(const Pages& pages) {
  const auto start = Clock::now();
  while (seconds_since(start) < 0.0005) {
    for (size_t at = 0; at < kStreamed; at += 512) {
      if (std::atomic_ref<uint8_t>(pages.data()[at]).load() != 0) return true;
    }
  }
  return false;
}

void die_under_a_stream(Peer& peer) {
  const Nic nic("softnic1");
  const Pages pages(kStreamed);
  for (int round = 0; round < kDestructions; ++round) {
    QpPtr qp = make_qp(nic);
    to_init(qp.get());
    to_rtr(qp.get(), peer.exchange(address_of(qp.get())));  // the first message is an event there
    peer.meet();
    std::memset(pages.data(), 0, kStreamed);
    MrPtr mr(ibv_reg_mr(nic.pd.get(), pages.data(), kStreamed, kAllAccess));
    BL_MUST(mr != nullptr);
    peer.send(0, Region{reinterpret_cast<uint64_t>(pages.data()), kStreamed, mr->lkey, mr->rkey});
    ibv_async_event event = unacknowledged_event(nic.context.get());  // what destroying waits for
    BL_MUST(event.event_type == IBV_EVENT_COMM_EST);
    {
      const std::jthread destroyer([&] { qp.reset(); });
      dawdle(round % 20 * 8000);
      mr.reset();
      std::memset(pages.data(), 0, kStreamed);
      const bool late = is_still_written(pages);
      ibv_ack_async_event(&event);
      BL_MUST(!late);
    }
    peer.meet();
  }
}

}  // namespace

TEST_CASE("regress: work posted while the queue pair is queried is done", "[softnic][regress]") {
  Pair pair;
  const std::jthread asker([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) state_of(pair.a.qp);
  });
  const auto start = Clock::now();
  for (int round = 0; round < 1'000'000 && seconds_since(start) < 2; ++round) {
    REQUIRE(post(pair.a.qp, nothing_work()) == 0);
    must_complete(pair.a.send_cq.get(), 0);  // nothing else would set it going
  }
}

TEST_CASE("regress: receives complete once when a poll meets the flush", "[softnic][regress]") {
  constexpr size_t kSends = 200;
  constexpr size_t kReceives = 210;
  Pair pair({.shape = {.send_depth = kSends, .recv_depth = kReceives}});
  std::vector<SendWork> sends(kSends, unsignaled({.opcode = IBV_WR_SEND}));
  for (int round = 0; round < 500; ++round) {
    connect_both(pair.a.qp, pair.b.qp);
    std::vector<RecvWork> receives(kReceives);
    for (size_t i = 0; i < kReceives; ++i) receives[i].wr_id = i;
    REQUIRE(post_list(pair.b.qp, receives) == 0);
    REQUIRE(post_list(pair.a.qp, sends) == 0);
    std::vector<ibv_wc> done;
    std::atomic<bool> polling{false};
    {
      const std::jthread poller([&] {
        polling = true;
        done = poll_many(pair.b.recv_cq.get(), kReceives);
      });
      wait_until([&] { return polling.load(); }, "the poller");
      dawdle(round % 100 * 20);
      REQUIRE(modify_state(pair.b.qp, IBV_QPS_ERR) == 0);
    }
    for (size_t i = 0; i < kReceives; ++i) REQUIRE(done[i].wr_id == i);
    REQUIRE(is_empty(pair.b.recv_cq.get()));
    REQUIRE(modify_state(pair.a.qp, IBV_QPS_RESET) == 0);
  }
}

TEST_CASE("regress: a late refusal does not reach the next life of a queue pair",
          "[softnic][regress]") {
  constexpr size_t kSize = 256u << 10;
  constexpr size_t kPage = 4096;
  constexpr Wire kHasty{.retry_cnt = 0};
  Pair pair({.clock_scale = 0.001});
  Buffer from = pair.a.buffer(kSize);
  const Pages pages(kSize);
  const MrPtr mr(ibv_reg_mr(pair.b.pd.get(), pages.data(), kSize, kAllAccess));
  REQUIRE(mr != nullptr);
  REQUIRE(mprotect(pages.data() + kSize - kPage, kPage, PROT_NONE) == 0);  // found at the very end
  const Region target{reinterpret_cast<uint64_t>(pages.data()), kSize, mr->lkey, mr->rkey};
  for (int round = 0; round < 1000; ++round) {
    connect_both(pair.a.qp, pair.b.qp, kHasty);
    std::atomic<bool> running{false};
    const std::jthread writer([&] {
      running = true;
      static_cast<void>(post(pair.a.qp, write_work(from.all(), target)));
    });
    wait_until([&] { return running.load(); }, "the writer");
    dawdle(round % 400 * 50);
    REQUIRE(modify_state(pair.b.qp, IBV_QPS_RESET) == 0);
    REQUIRE(state_of(pair.b.qp) == IBV_QPS_RESET);
    to_init(pair.b.qp);
    REQUIRE(poll_one(pair.a.send_cq.get()).status != IBV_WC_SUCCESS);
    REQUIRE(state_of(pair.b.qp) == IBV_QPS_INIT);
  }
}

TEST_CASE("regress: nothing lands in deregistered memory while a queue pair is destroyed",
          "[softnic][regress]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  const TestFabric fabric(0.001);
  run_peers(mode, {stream_into_the_dying, die_under_a_stream});
}

TEST_CASE("regress: the flush behind a local fault waits for no wire", "[softnic][regress]") {
  double best = 1;
  for (int round = 0; round < 3; ++round) {
    Pair pair;
    Buffer from = pair.a.buffer(64u << 10);
    pair.fabric.command("h0/softnic0", "rate=4K");
    SendWork good = write_work(from.all(), pair.b.buffer(64u << 10).all());
    SendWork fault = good;
    fault.local[0] = {from.all().addr, 8, from.all().lkey ^ 0x100};
    const auto start = Clock::now();
    for (const SendWork& work : {fault, good, good}) REQUIRE(post(pair.a.qp, work) == 0);
    const auto failed = poll_many(pair.a.send_cq.get(), 3);
    best = std::min(best, seconds_since(start));
    CHECK(failed[0].status == IBV_WC_LOC_PROT_ERR);
    CHECK(failed[2].status == IBV_WC_WR_FLUSH_ERR);
  }
  CHECK(best < 0.5);  // the first piece of the next alone takes a second
}

TEST_CASE("regress: a wire that gets fast frees what waits for it", "[softnic][regress]") {
  Pair pair;
  Buffer from = pair.a.buffer(256u << 10);
  Buffer into = pair.b.buffer(256u << 10);
  from.fill(1);
  pair.fabric.command("h0/softnic0", "rate=32");  // hours
  REQUIRE(post(pair.a.qp, write_work(from.all(), into.all(), 1)) == 0);
  for (int i = 0; i < 1000; ++i) REQUIRE(is_empty(pair.a.send_cq.get()));
  pair.fabric.command("h0/softnic0", "rate=max");
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(into.has(1));
}

TEST_CASE("regress: a forked child may destroy what it inherited", "[softnic][regress]") {
  if (!kProcessesWork) return;
  constexpr size_t kSize = 8u << 20;
  Pair pair;
  Buffer from = pair.a.buffer(kSize);
  Buffer into = pair.b.buffer(kSize);
  for (uint32_t round = 0; round < 8; ++round) {
    from.fill(round);
    for (int i = 0; i < 4; ++i) REQUIRE(post(pair.a.qp, write_work(from.all(), into.all())) == 0);
    run_peers(PeerMode::kProcesses, {[&](Peer&) {
                pair.a.owned_qp.reset();
                pair.b.owned_qp.reset();
                from.deregister();
                into.deregister();
                pair.a.send_cq.reset();
              }});
    for (int i = 0; i < 4; ++i) must_complete(pair.a.send_cq.get(), 0);
    REQUIRE(into.has(round));
  }
}
