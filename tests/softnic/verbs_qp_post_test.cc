// SPDX-License-Identifier: Apache-2.0
//
// What may be posted in which state, and what a state change does to work that is queued.
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

TEST_CASE("qp_post: sends are EINVAL before RTS, receives before INIT", "[softnic][qp_post]") {
  const TestFabric fabric;
  Endpoint end("softnic0");
  CHECK(post(end.qp, nothing_work()) == EINVAL);
  CHECK(post(end.qp, RecvWork{}) == EINVAL);
  to_init(end.qp);
  CHECK(post(end.qp, nothing_work()) == EINVAL);
  CHECK(post(end.qp, RecvWork{.wr_id = 1}) == 0);
  to_rtr(end.qp, address_of(end.qp));
  CHECK(post(end.qp, nothing_work()) == EINVAL);
  CHECK(post(end.qp, RecvWork{.wr_id = 2}) == 0);
  to_rts(end.qp);
  CHECK(post(end.qp, nothing_work(7)) == 0);
  must_complete(end.send_cq.get(), 7);
  // Nothing that was refused has left a trace, and what was taken is there.
  REQUIRE(modify_state(end.qp, IBV_QPS_ERR) == 0);
  const auto flushed = poll_many(end.recv_cq.get(), 2);
  CHECK(flushed[0].wr_id == 1);
  CHECK(flushed[1].wr_id == 2);
  CHECK(is_empty(end.recv_cq.get()));
  CHECK(is_empty(end.send_cq.get()));
}

TEST_CASE("qp_post: a receive posted in INIT serves the first message", "[softnic][qp_post]") {
  const TestFabric fabric;
  Endpoint a("softnic0");
  Endpoint b("softnic1");
  Buffer from = a.buffer(100);
  Buffer into = b.buffer(100);
  from.fill(1);
  to_init(b.qp);
  REQUIRE(post(b.qp, recv_work(into.all(), 5)) == 0);
  to_rtr(b.qp, address_of(a.qp));
  connect(a.qp, address_of(b.qp));
  REQUIRE(post(a.qp, send_work(from.all(), 6)) == 0);
  must_complete(a.send_cq.get(), 6);
  must_complete(b.recv_cq.get(), 5);  // RTR is enough to receive
  CHECK(into.has(1));
}

TEST_CASE("qp_post: too many pieces are EINVAL", "[softnic][qp_post]") {
  Pair pair({.shape = {.max_sge = 2}});
  Buffer buffer = pair.a.buffer(4096);
  SendWork send{.opcode = IBV_WR_SEND};
  send.local.assign(pair.a.cap.max_send_sge + 1, buffer.part(0, 8).sge());
  CHECK(post(pair.a.qp, send) == EINVAL);
  RecvWork recv;
  recv.local.assign(pair.a.cap.max_recv_sge + 1, buffer.part(0, 8).sge());
  CHECK(post(pair.a.qp, recv) == EINVAL);
}

TEST_CASE("qp_post: the first bad request of a list stops it, those before it run",
          "[softnic][qp_post]") {
  Pair pair;
  Buffer from = pair.a.buffer(64);
  Buffer into = pair.b.buffer(64);
  from.fill(2);
  SendWork bad = write_work(from.all(), into.all(), 2);
  bad.local.assign(pair.a.cap.max_send_sge + 1, from.part(0, 1).sge());
  size_t accepted = 99;
  CHECK(post_list(pair.a.qp, {write_work(from.all(), into.all(), 1), bad, nothing_work(3)},
                  &accepted) == EINVAL);
  CHECK(accepted == 1);
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(into.has(2));
  REQUIRE(post(pair.a.qp, nothing_work(4)) == 0);
  must_complete(pair.a.send_cq.get(), 4);  // and not 3
}

TEST_CASE("qp_post: an unknown operation is EINVAL", "[softnic][qp_post]") {
  Pair pair;
  SendWork work = nothing_work(1);
  work.opcode = static_cast<ibv_wr_opcode>(14);  // between DRIVER1 and ATOMIC_WRITE
  CHECK(post(pair.a.qp, work) == EINVAL);
}

TEST_CASE("qp_post: RESET forgets queued work without completions", "[softnic][qp_post]") {
  Pair pair;
  Buffer from = pair.a.buffer(32);
  Buffer into = pair.b.buffer(32);
  for (uint64_t i = 0; i < 5; ++i) REQUIRE(post(pair.b.qp, recv_work(into.all(), i)) == 0);
  REQUIRE(modify_state(pair.a.qp, IBV_QPS_RESET) == 0);
  REQUIRE(modify_state(pair.b.qp, IBV_QPS_RESET) == 0);
  connect_both(pair.a.qp, pair.b.qp);
  from.fill(3);
  REQUIRE(post(pair.b.qp, recv_work(into.all(), 100)) == 0);
  REQUIRE(post(pair.a.qp, send_work(from.all(), 101)) == 0);
  must_complete(pair.a.send_cq.get(), 101);
  must_complete(pair.b.recv_cq.get(), 100);
  CHECK(into.has(3));
}

TEST_CASE("qp_post: RESET takes unpolled completions along", "[softnic][qp_post]") {
  Pair pair;
  for (uint64_t i = 0; i < 4; ++i) {
    REQUIRE(post(pair.b.qp, RecvWork{.wr_id = i}) == 0);
    REQUIRE(post(pair.a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = i}) == 0);
  }
  must_complete(pair.a.send_cq.get(), 0);
  must_complete(pair.b.recv_cq.get(), 0);
  REQUIRE(modify_state(pair.a.qp, IBV_QPS_RESET) == 0);
  REQUIRE(modify_state(pair.b.qp, IBV_QPS_RESET) == 0);
  CHECK(is_empty(pair.a.send_cq.get()));
  CHECK(is_empty(pair.b.recv_cq.get()));
  connect_both(pair.a.qp, pair.b.qp);
  REQUIRE(post(pair.b.qp, RecvWork{.wr_id = 50}) == 0);
  REQUIRE(post(pair.a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = 51}) == 0);
  must_complete(pair.a.send_cq.get(), 51);
  must_complete(pair.b.recv_cq.get(), 50);
}

TEST_CASE("qp_post: in SQD sends wait, receives go on, RTS takes the sends up again",
          "[softnic][qp_post]") {
  Pair pair;
  Buffer a_bytes = pair.a.buffer(64);
  Buffer b_bytes = pair.b.buffer(64);
  Buffer a_into = pair.a.buffer(64);
  REQUIRE(modify_state(pair.a.qp, IBV_QPS_SQD) == 0);
  a_bytes.fill(4);
  REQUIRE(post(pair.a.qp, write_work(a_bytes.all(), b_bytes.all(), 1)) == 0);

  // The other direction works: a round trip gives a wrongly started send its chance.
  Buffer b_from = pair.b.buffer(64);
  b_from.fill(5);
  REQUIRE(post(pair.a.qp, recv_work(a_into.all(), 2)) == 0);
  REQUIRE(post(pair.b.qp, send_work(b_from.all(), 3)) == 0);
  must_complete(pair.b.send_cq.get(), 3);
  must_complete(pair.a.recv_cq.get(), 2);
  CHECK(a_into.has(5));
  CHECK(is_empty(pair.a.send_cq.get()));
  CHECK(b_bytes.is_zero(0, 64));

  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  REQUIRE(ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE) == 0);
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(b_bytes.has(4));
}

TEST_CASE("qp_post: a queue pair reconnects again and again", "[softnic][qp_post]") {
  Pair pair;
  Buffer from = pair.a.buffer(512);
  Buffer into = pair.b.buffer(512);
  for (uint32_t round = 0; round < 50; ++round) {
    const bool by_error = round % 2 == 0;
    if (by_error) {
      REQUIRE(modify_state(pair.a.qp, IBV_QPS_ERR) == 0);
      REQUIRE(modify_state(pair.b.qp, IBV_QPS_ERR) == 0);
    }
    connect_both(pair.a.qp, pair.b.qp, {.sq_psn = round * 7919});
    from.fill(round);
    REQUIRE(post(pair.a.qp, write_work(from.all(), into.all(), round)) == 0);
    must_complete(pair.a.send_cq.get(), round);
    REQUIRE(into.has(round));
  }
}
