// SPDX-License-Identifier: Apache-2.0
//
// Threads that use the same objects at once. Most cases are races, so they try for a while.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/support/pages.h"
#include "tests/support/peer_group.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

TEST_CASE("race: work posted during a move to ERR completes exactly once", "[softnic][race]") {
  constexpr std::uint64_t kWork = 2000;
  const bool receives = GENERATE(false, true);
  for (int round = 0; round < 10; ++round) {
    Pair pair({.shape = {.send_depth = kWork, .recv_depth = kWork, .cqe = kWork}});
    std::atomic<std::uint64_t> posted{0};
    std::thread poster([&] {
      for (std::uint64_t i = 0; i < kWork; ++i) {
        const int rc =
            receives ? post(pair.a.qp, RecvWork{.wr_id = i}) : post(pair.a.qp, nothing_work(i));
        if (rc != 0) return;
        ++posted;
      }
    });
    wait_until([&] { return posted > static_cast<std::uint64_t>(round) * 100; }, "the poster");
    REQUIRE(modify_state(pair.a.qp, IBV_QPS_ERR) == 0);
    poster.join();
    REQUIRE(posted == kWork);  // posting in ERR succeeds
    ibv_cq* cq = receives ? pair.a.recv_cq.get() : pair.a.send_cq.get();
    bool flushing = false;
    std::uint64_t next = 0;
    for (const ibv_wc& wc : poll_many(cq, kWork)) {
      REQUIRE(wc.wr_id == next++);
      REQUIRE((wc.status == IBV_WC_WR_FLUSH_ERR || (!flushing && wc.status == IBV_WC_SUCCESS)));
      flushing = wc.status == IBV_WC_WR_FLUSH_ERR;
    }
    CHECK(is_empty(cq));
  }
}

TEST_CASE("race: threads that poll one queue share its completions", "[softnic][race]") {
  constexpr std::uint64_t kWork = 4000;
  constexpr std::size_t kPollers = 3;
  Pair pair({.shape = {.send_depth = kWork, .cqe = kWork}});
  std::atomic<std::uint64_t> taken{0};
  std::vector<std::atomic<int>> seen(kWork);
  std::vector<PeerBody> bodies(kPollers, [&](Peer&) {
    wait_until(
        [&] {
          ibv_wc wcs[5];
          const int count = ibv_poll_cq(pair.a.send_cq.get(), 5, wcs);
          BL_MUST(count >= 0);
          for (int i = 0; i < count; ++i) {
            BL_MUST(wcs[i].status == IBV_WC_SUCCESS);
            seen.at(wcs[i].wr_id).fetch_add(1);
          }
          return taken.fetch_add(static_cast<std::uint64_t>(count)) +
                         static_cast<std::uint64_t>(count) ==
                     kWork ||
                 taken == kWork;
        },
        "all completions");
  });
  bodies.push_back([&](Peer&) {
    for (std::uint64_t i = 0; i < kWork; ++i) BL_MUST_OK(post(pair.a.qp, nothing_work(i)));
  });
  run_peers(PeerMode::kThreads, bodies);
  CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& count) { return count == 1; }));
}

TEST_CASE("race: a refusal does not affect a queue pair after its reset", "[softnic][race]") {
  constexpr std::size_t kSize = 256u << 10;
  constexpr std::size_t kPage = 4096;
  constexpr Wire kHasty{.retry_cnt = 0};
  const bool late = GENERATE(false, true);
  Pair pair({.clock_scale = 0.001});
  Buffer from = pair.a.buffer(kSize);
  const Pages pages(kSize);
  const MrPtr mr(ibv_reg_mr(pair.b.pd.get(), pages.data(), kSize, kAllAccess));
  REQUIRE(mr != nullptr);
  Region target{reinterpret_cast<std::uint64_t>(pages.data()), kSize, mr->lkey, mr->rkey};
  if (late) {
    REQUIRE(mprotect(pages.data() + kSize - kPage, kPage, PROT_NONE) == 0);  // found at the end
  } else {
    target.rkey = 0xBAD00;  // found at the beginning
  }
  for (int round = 0; round < (late ? 1000 : 300); ++round) {
    connect_both(pair.a.qp, pair.b.qp, kHasty);
    std::atomic<bool> running{false};
    const std::jthread writer([&] {
      running = true;
      static_cast<void>(post(pair.a.qp, write_work(from.all(), target)));
    });
    wait_until([&] { return running.load(); }, "the writer");
    spin(late ? round % 400 * 50 : 0);
    REQUIRE(modify_state(pair.b.qp, IBV_QPS_RESET) == 0);
    REQUIRE(state_of(pair.b.qp) == IBV_QPS_RESET);
    to_init(pair.b.qp);
    REQUIRE(poll_one(pair.a.send_cq.get()).status != IBV_WC_SUCCESS);
    REQUIRE(state_of(pair.b.qp) == IBV_QPS_INIT);
  }
}

TEST_CASE("race: memory is registered and deregistered during traffic", "[softnic][race]") {
  Pair pair;
  Buffer from = pair.a.buffer(4096);
  Buffer into = pair.b.buffer(4096);
  from.fill(1);
  std::atomic<bool> stop{false};
  std::thread churn([&] {
    std::vector<std::uint8_t> bytes(4096);
    while (!stop) {
      const MrPtr mr(ibv_reg_mr(pair.b.pd.get(), bytes.data(), bytes.size(), kAllAccess));
      if (mr == nullptr) return;
    }
  });
  bool good = true;
  for (std::uint64_t i = 0; i < 1000 && good; ++i) {
    BL_MUST_OK(post(pair.a.qp, write_work(from.all(), into.all(), i)));
    good = poll_one(pair.a.send_cq.get()).status == IBV_WC_SUCCESS;
  }
  stop = true;
  churn.join();
  CHECK(good);
  CHECK(into.has(1));
}

TEST_CASE("race: work posted during a query is executed", "[softnic][race]") {
  Pair pair;
  const std::jthread asker([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) state_of(pair.a.qp);
  });
  const auto start = Clock::now();
  for (int round = 0; round < 1'000'000 && seconds_since(start) < 2; ++round) {
    REQUIRE(post(pair.a.qp, nothing_work()) == 0);
    must_complete(pair.a.send_cq.get(), 0);  // nothing else would start it
  }
}

TEST_CASE("race: receives complete once when a poll meets the flush", "[softnic][race]") {
  constexpr std::size_t kSends = 200;
  constexpr std::size_t kReceives = 210;
  Pair pair({.shape = {.send_depth = kSends, .recv_depth = kReceives}});
  std::vector<SendWork> sends(kSends, unsignaled({.opcode = IBV_WR_SEND}));
  for (int round = 0; round < 500; ++round) {
    connect_both(pair.a.qp, pair.b.qp);
    std::vector<RecvWork> receives(kReceives);
    for (std::size_t i = 0; i < kReceives; ++i) receives[i].wr_id = i;
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
      spin(round % 100 * 20);
      REQUIRE(modify_state(pair.b.qp, IBV_QPS_ERR) == 0);
    }
    for (std::size_t i = 0; i < kReceives; ++i) REQUIRE(done[i].wr_id == i);
    REQUIRE(is_empty(pair.b.recv_cq.get()));
    REQUIRE(modify_state(pair.a.qp, IBV_QPS_RESET) == 0);
  }
}
