// SPDX-License-Identifier: Apache-2.0
//
// Queue pairs in the error state: what is flushed, in which order, and how one comes back.
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

SendWork poison(Buffer& local, uint64_t wr_id) {
  SendWork work = write_work(local.all(), {}, wr_id);
  work.local[0].lkey += 0x100;
  return work;
}

void check_flushed(ibv_cq* cq, uint64_t first, uint64_t count) {
  for (uint64_t i = first; i < first + count; ++i) {
    const ibv_wc wc = poll_one(cq);
    CHECK(wc.wr_id == i);
    CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
  }
  CHECK(is_empty(cq));
}

}  // namespace

TEST_CASE("flush: what stands behind a failure is flushed in order, signalled or not",
          "[softnic][flush]") {
  Pair pair;
  Buffer local = pair.a.buffer(64);
  Buffer remote = pair.b.buffer(64);
  std::vector<SendWork> list;
  list.push_back(unsignaled(write_work(local.all(), remote.all(), 0)));
  list.push_back(unsignaled(write_work(local.all(), remote.all(), 1)));
  list.push_back(unsignaled(poison(local, 2)));
  for (uint64_t i = 3; i < 8; ++i) {
    const SendWork work = write_work(local.all(), remote.all(), i);
    list.push_back(i % 2 == 0 ? unsignaled(work) : work);
  }
  for (uint64_t i = 100; i < 105; ++i) REQUIRE(post(pair.a.qp, RecvWork{.wr_id = i}) == 0);
  REQUIRE(post_list(pair.a.qp, list) == 0);
  // 0 and 1 went well and were not to be reported; the failure is, whatever its flags.
  const ibv_wc failed = poll_one(pair.a.send_cq.get());
  CHECK(failed.wr_id == 2);
  CHECK(failed.status == IBV_WC_LOC_PROT_ERR);
  for (uint64_t i = 3; i < 8; ++i) {
    const ibv_wc wc = poll_one(pair.a.send_cq.get());
    CHECK(wc.wr_id == i);
    CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
    CHECK(wc.qp_num == pair.a.qp->qp_num);
  }
  CHECK(is_empty(pair.a.send_cq.get()));
  for (uint64_t i = 100; i < 105; ++i) {
    const ibv_wc wc = poll_one(pair.a.recv_cq.get());
    CHECK(wc.wr_id == i);
    CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
  }
  CHECK(is_empty(pair.a.recv_cq.get()));
}

TEST_CASE("flush: no byte moves for work behind a failure", "[softnic][flush]") {
  Pair pair;
  Buffer local = pair.a.buffer(64);
  Buffer remote = pair.b.buffer(64);
  local.fill(1);
  REQUIRE(post_list(pair.a.qp, {poison(local, 0), write_work(local.all(), remote.all(), 1)}) == 0);
  CHECK(poll_many(pair.a.send_cq.get(), 2)[1].status == IBV_WC_WR_FLUSH_ERR);
  CHECK(remote.is_zero(0, 64));
}

TEST_CASE("flush: moving to ERR flushes both queues in order", "[softnic][flush]") {
  // The peer is silent, so the sends are still there when the state changes.
  Pair pair({.wire = {.timeout = 0}});
  REQUIRE(modify_state(pair.b.qp, IBV_QPS_RESET) == 0);
  for (uint64_t i = 0; i < 10; ++i) {
    REQUIRE(post(pair.a.qp, RecvWork{.wr_id = i}) == 0);
    REQUIRE(post(pair.a.qp, nothing_work(i)) == 0);
  }
  REQUIRE(modify_state(pair.a.qp, IBV_QPS_ERR) == 0);
  check_flushed(pair.a.send_cq.get(), 0, 10);
  check_flushed(pair.a.recv_cq.get(), 0, 10);
}

TEST_CASE("flush: receives posted in INIT are flushed too", "[softnic][flush]") {
  const TestFabric fabric;
  Endpoint end("softnic0");
  to_init(end.qp);
  for (uint64_t i = 0; i < 4; ++i) REQUIRE(post(end.qp, RecvWork{.wr_id = i}) == 0);
  REQUIRE(modify_state(end.qp, IBV_QPS_ERR) == 0);
  check_flushed(end.recv_cq.get(), 0, 4);
}

TEST_CASE("flush: what has completed but was not polled is not flushed again", "[softnic][flush]") {
  Pair pair;
  for (uint64_t i = 0; i < 6; ++i) REQUIRE(post(pair.b.qp, RecvWork{.wr_id = i}) == 0);
  for (uint64_t i = 0; i < 3; ++i) {
    REQUIRE(post(pair.a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = i}) == 0);
  }
  must_complete(pair.a.send_cq.get(), 0);
  must_complete(pair.a.send_cq.get(), 1);
  must_complete(pair.a.send_cq.get(), 2);  // so the three are in B's queue by now
  REQUIRE(modify_state(pair.b.qp, IBV_QPS_ERR) == 0);
  for (uint64_t i = 0; i < 3; ++i) must_complete(pair.b.recv_cq.get(), i);
  check_flushed(pair.b.recv_cq.get(), 3, 3);
}

TEST_CASE("flush: work posted in ERR is taken and flushed", "[softnic][flush]") {
  Pair pair;
  Buffer local = pair.a.buffer(64);
  REQUIRE(modify_state(pair.a.qp, IBV_QPS_ERR) == 0);
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 5; ++i) {
      REQUIRE(post(pair.a.qp, unsignaled(nothing_work(round * 5 + i))) == 0);
      REQUIRE(post(pair.a.qp, recv_work(local.all(), round * 5 + i)) == 0);
    }
    check_flushed(pair.a.send_cq.get(), round * 5, 5);
    check_flushed(pair.a.recv_cq.get(), round * 5, 5);
  }
}

TEST_CASE("flush: slots of flushed work come back when it is polled", "[softnic][flush]") {
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

TEST_CASE("flush: a peer in ERR is silent", "[softnic][flush]") {
  Pair pair({.clock_scale = 0.01, .wire = {.retry_cnt = 1}});
  Buffer local = pair.a.buffer(64);
  Buffer remote = pair.b.buffer(64);
  local.fill(1);
  REQUIRE(modify_state(pair.b.qp, IBV_QPS_ERR) == 0);
  REQUIRE(post(pair.a.qp, write_work(local.all(), remote.all(), 1)) == 0);
  CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_RETRY_EXC_ERR);
  CHECK(remote.is_zero(0, 64));
}

TEST_CASE("flush: after an error both ends can be connected anew", "[softnic][flush]") {
  Pair pair;
  Buffer local = pair.a.buffer(64);
  Buffer remote = pair.b.buffer(64);
  for (uint32_t round = 0; round < 10; ++round) {
    Region wrong = remote.all();
    wrong.rkey += 0x100;
    REQUIRE(post(pair.b.qp, RecvWork{.wr_id = round}) == 0);
    REQUIRE(post(pair.a.qp, write_work(local.all(), wrong, round)) == 0);
    CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_REM_ACCESS_ERR);
    check_flushed(pair.b.recv_cq.get(), round, 1);
    CHECK(next_event(pair.b.context.get()).event_type == IBV_EVENT_QP_ACCESS_ERR);
    connect_both(pair.a.qp, pair.b.qp);
    local.fill(round);
    REQUIRE(post(pair.a.qp, write_work(local.all(), remote.all(), round)) == 0);
    must_complete(pair.a.send_cq.get(), round);
    REQUIRE(remote.has(round));
  }
}
