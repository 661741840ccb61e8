// SPDX-License-Identifier: Apache-2.0
//
// Threads that use the same objects at once.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/support/peer_group.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

TEST_CASE("race: work posted while the queue pair breaks completes exactly once",
          "[softnic][race]") {
  constexpr uint64_t kWork = 2000;
  const bool receives = GENERATE(false, true);
  for (int round = 0; round < 10; ++round) {
    Pair pair({.shape = {.send_depth = kWork, .recv_depth = kWork, .cqe = kWork}});
    std::atomic<uint64_t> posted{0};
    std::thread poster([&] {
      for (uint64_t i = 0; i < kWork; ++i) {
        const int rc =
            receives ? post(pair.a.qp, RecvWork{.wr_id = i}) : post(pair.a.qp, nothing_work(i));
        if (rc != 0) return;
        ++posted;
      }
    });
    wait_until([&] { return posted > static_cast<uint64_t>(round) * 100; }, "the poster");
    REQUIRE(modify_state(pair.a.qp, IBV_QPS_ERR) == 0);
    poster.join();
    REQUIRE(posted == kWork);  // posting in ERR is no error
    ibv_cq* cq = receives ? pair.a.recv_cq.get() : pair.a.send_cq.get();
    bool flushing = false;
    uint64_t next = 0;
    for (const ibv_wc& wc : poll_many(cq, kWork)) {
      REQUIRE(wc.wr_id == next++);
      REQUIRE((wc.status == IBV_WC_WR_FLUSH_ERR || (!flushing && wc.status == IBV_WC_SUCCESS)));
      flushing = wc.status == IBV_WC_WR_FLUSH_ERR;
    }
    CHECK(is_empty(cq));
  }
}

TEST_CASE("race: threads that poll one queue share its completions", "[softnic][race]") {
  constexpr uint64_t kWork = 4000;
  constexpr size_t kPollers = 3;
  Pair pair({.shape = {.send_depth = kWork, .cqe = kWork}});
  std::atomic<uint64_t> taken{0};
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
          return taken.fetch_add(static_cast<uint64_t>(count)) + static_cast<uint64_t>(count) ==
                     kWork ||
                 taken == kWork;
        },
        "all completions");
  });
  bodies.push_back([&](Peer&) {
    for (uint64_t i = 0; i < kWork; ++i) BL_MUST_OK(post(pair.a.qp, nothing_work(i)));
  });
  run_peers(PeerMode::kThreads, bodies);
  CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& count) { return count == 1; }));
}

TEST_CASE("race: a bad request does not break a queue pair that was just reset",
          "[softnic][race]") {
  Pair pair({.clock_scale = 0.01, .wire = {.retry_cnt = 0}});
  Buffer from = pair.a.buffer(8);
  for (int round = 0; round < 300; ++round) {
    connect_both(pair.a.qp, pair.b.qp, {.retry_cnt = 0});
    Region nowhere = from.all();
    nowhere.rkey = 0xBAD00;
    std::atomic<bool> go{false};
    std::thread attacker([&] {
      while (!go) {
      }
      static_cast<void>(post(pair.a.qp, write_work(from.all(), nowhere)));
    });
    go = true;
    REQUIRE(modify_state(pair.b.qp, IBV_QPS_RESET) == 0);
    to_init(pair.b.qp);
    attacker.join();
    CHECK(state_of(pair.b.qp) == IBV_QPS_INIT);
    CHECK(poll_one(pair.a.send_cq.get()).status != IBV_WC_SUCCESS);
  }
}

TEST_CASE("race: registering and deregistering beside traffic", "[softnic][race]") {
  Pair pair;
  Buffer from = pair.a.buffer(4096);
  Buffer into = pair.b.buffer(4096);
  from.fill(1);
  std::atomic<bool> stop{false};
  std::thread churn([&] {
    std::vector<uint8_t> bytes(4096);
    while (!stop) {
      const MrPtr mr(ibv_reg_mr(pair.b.pd.get(), bytes.data(), bytes.size(), kAllAccess));
      if (mr == nullptr) return;
    }
  });
  bool good = true;
  for (uint64_t i = 0; i < 1000 && good; ++i) {
    BL_MUST_OK(post(pair.a.qp, write_work(from.all(), into.all(), i)));
    good = poll_one(pair.a.send_cq.get()).status == IBV_WC_SUCCESS;
  }
  stop = true;
  churn.join();
  CHECK(good);
  CHECK(into.has(1));
}
