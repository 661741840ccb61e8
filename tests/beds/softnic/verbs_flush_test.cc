// SPDX-License-Identifier: Apache-2.0
//
// Queue pairs in ERR: which requests are flushed, in which order, and how soon.
#include <algorithm>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

SendWork poison(Buffer& local, std::uint64_t wr_id) {
  SendWork work = write_work(local.all(), {}, wr_id);
  work.local[0].lkey += 0x100;
  return work;
}

void check_flushed(ibv_cq* cq, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = first; i < first + count; ++i) {
    const ibv_wc wc = poll_one(cq);
    CHECK(wc.wr_id == i);
    CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
  }
  CHECK(is_empty(cq));
}

}  // namespace

TEST_CASE("flush: requests after a failure are flushed in order, signaled or not",
          "[softnic][flush]") {
  Pair pair;
  Buffer local = pair.a.buffer(64);
  Buffer remote = pair.b.buffer(64);
  std::vector<SendWork> list;
  list.push_back(unsignaled(write_work(local.all(), remote.all(), 0)));
  list.push_back(unsignaled(write_work(local.all(), remote.all(), 1)));
  list.push_back(unsignaled(poison(local, 2)));
  for (std::uint64_t i = 3; i < 8; ++i) {
    const SendWork work = write_work(local.all(), remote.all(), i);
    list.push_back(i % 2 == 0 ? unsignaled(work) : work);
  }
  for (std::uint64_t i = 100; i < 105; ++i) REQUIRE(post(pair.a.qp, RecvWork{.wr_id = i}) == 0);
  REQUIRE(post_list(pair.a.qp, list) == 0);
  // 0 and 1 succeeded unsignaled, so they have no completion. The failure has one, whatever its
  // flags.
  const ibv_wc failed = poll_one(pair.a.send_cq.get());
  CHECK(failed.wr_id == 2);
  CHECK(failed.status == IBV_WC_LOC_PROT_ERR);
  for (std::uint64_t i = 3; i < 8; ++i) {
    const ibv_wc wc = poll_one(pair.a.send_cq.get());
    CHECK(wc.wr_id == i);
    CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
    CHECK(wc.qp_num == pair.a.qp->qp_num);
  }
  CHECK(is_empty(pair.a.send_cq.get()));
  for (std::uint64_t i = 100; i < 105; ++i) {
    const ibv_wc wc = poll_one(pair.a.recv_cq.get());
    CHECK(wc.wr_id == i);
    CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
  }
  CHECK(is_empty(pair.a.recv_cq.get()));
}

TEST_CASE("flush: moving to ERR flushes both queues in order", "[softnic][flush]") {
  // The peer does not answer, so the sends are still queued when the state changes.
  Pair pair({.wire = {.timeout = 0}});
  REQUIRE(modify_state(pair.b.qp, IBV_QPS_RESET) == 0);
  for (std::uint64_t i = 0; i < 10; ++i) {
    REQUIRE(post(pair.a.qp, RecvWork{.wr_id = i}) == 0);
    REQUIRE(post(pair.a.qp, nothing_work(i)) == 0);
  }
  REQUIRE(modify_state(pair.a.qp, IBV_QPS_ERR) == 0);
  check_flushed(pair.a.send_cq.get(), 0, 10);
  check_flushed(pair.a.recv_cq.get(), 0, 10);
}

TEST_CASE("flush: queue entries of flushed work are free when it is polled", "[softnic][flush]") {
  Pair pair({.shape = {.send_depth = 4, .recv_depth = 4}});
  REQUIRE(modify_state(pair.a.qp, IBV_QPS_ERR) == 0);
  for (int round = 0; round < 3; ++round) {
    std::vector<SendWork> sends(pair.a.cap.max_send_wr, unsignaled(nothing_work()));
    REQUIRE(post_list(pair.a.qp, sends) == 0);
    poll_many(pair.a.send_cq.get(), sends.size());
    std::vector<RecvWork> recvs(pair.a.cap.max_recv_wr);
    REQUIRE(post_list(pair.a.qp, recvs) == 0);
    poll_many(pair.a.recv_cq.get(), recvs.size());
  }
}

TEST_CASE("flush: the flush after a local fault does not wait for the wire", "[softnic][flush]") {
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
  CHECK(best < 0.5);  // the first piece of the next message alone takes a second
}
