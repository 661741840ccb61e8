// SPDX-License-Identifier: Apache-2.0
//
// Events of shared receive queues: the limit, and the last receive of a queue pair.
#include <algorithm>
#include <set>

#include "tests/beds/softnic/srq_scene.h"
#include "tests/support/peer_group.h"

using namespace beeline::test;

namespace {

// Reads events until a last-WQE event of `qp`.
std::vector<ibv_event_type> events_of(ibv_context* context, ibv_qp* qp) {
  std::vector<ibv_event_type> types;
  for (;;) {
    const ibv_async_event event = next_event(context);
    types.push_back(event.event_type);
    if (event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED && event.element.qp == qp) return types;
  }
}

}  // namespace

TEST_CASE("srq: the limit causes one event and can be armed again", "[softnic][srq]") {
  SrqScene scene;
  scene.post_receives(0, 5);
  for (int round = 0; round < 3; ++round) {
    INFO("round " << round);
    REQUIRE(arm_limit(scene.srq.get(), 3) == 0);
    ibv_srq_attr attr{};
    REQUIRE(ibv_query_srq(scene.srq.get(), &attr) == 0);
    CHECK(attr.srq_limit == 3);
    scene.send(1);
    scene.send(2);
    CHECK_FALSE(has_event(scene.b.context.get()));  // three are left, which is not below the limit
    scene.send(3);
    const ibv_async_event event = next_event(scene.b.context.get());
    CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
    CHECK(event.element.srq == scene.srq.get());
    scene.send(4);
    scene.send(5);
    CHECK_FALSE(has_event(scene.b.context.get()));
    REQUIRE(ibv_query_srq(scene.srq.get(), &attr) == 0);
    CHECK(attr.srq_limit == 0);
    poll_many(scene.b.recv_cq.get(), 5);
    scene.post_receives(0, 5);
  }
}

TEST_CASE("srq: an unarmed limit causes no event", "[softnic][srq]") {
  SrqScene scene;
  scene.post_receives(0, 5);
  SECTION("never armed") {}
  SECTION("armed and taken back") {
    REQUIRE(arm_limit(scene.srq.get(), 3) == 0);
    REQUIRE(arm_limit(scene.srq.get(), 0) == 0);
  }
  for (std::uint64_t i = 0; i < 5; ++i) scene.send(i);
  CHECK_FALSE(has_event(scene.b.context.get()));
}

TEST_CASE("srq: receives posted in between keep the limit from being reached", "[softnic][srq]") {
  SrqScene scene;
  scene.post_receives(0, 3);
  REQUIRE(arm_limit(scene.srq.get(), 2) == 0);
  for (std::uint64_t i = 0; i < 40; ++i) {
    scene.send(i);
    poll_one(scene.b.recv_cq.get());
    scene.post_receives(i, 1);
  }
  CHECK_FALSE(has_event(scene.b.context.get()));
  scene.send(1);
  scene.send(2);
  CHECK(next_event(scene.b.context.get()).event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
}

TEST_CASE("srq: an impossible modify changes nothing", "[softnic][srq]") {
  SrqScene scene;
  REQUIRE(arm_limit(scene.srq.get(), 2) == 0);
  ibv_srq_attr before{};
  REQUIRE(ibv_query_srq(scene.srq.get(), &before) == 0);
  ibv_srq_attr attr{};
  SECTION("a limit above the depth") {
    attr.srq_limit = before.max_wr + 1;
    CHECK(ibv_modify_srq(scene.srq.get(), &attr, IBV_SRQ_LIMIT) == EINVAL);
  }
  SECTION("another depth, which the device does not offer") {
    ibv_device_attr device{};
    REQUIRE(ibv_query_device(scene.b.context.get(), &device) == 0);
    if ((device.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) != 0) return;
    attr.max_wr = before.max_wr * 2;
    attr.srq_limit = 1;
    CHECK(ibv_modify_srq(scene.srq.get(), &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) != 0);
  }
  SECTION("a mask of nothing known") { CHECK(ibv_modify_srq(scene.srq.get(), &attr, 1 << 7) != 0); }
  ibv_srq_attr after{};
  REQUIRE(ibv_query_srq(scene.srq.get(), &after) == 0);
  CHECK(after.max_wr == before.max_wr);
  CHECK(after.srq_limit == before.srq_limit);
}

TEST_CASE("srq: each move to ERR causes one last-WQE event", "[softnic][srq]") {
  SrqScene scene;
  const QpPtr last = make_qp_on(scene.b, scene.srq.get());
  scene.post_receives(0, 3);
  for (int round = 0; round < 3; ++round) {
    INFO("round " << round);
    REQUIRE(modify_state(scene.qp.get(), IBV_QPS_ERR) == 0);
    CHECK(events_of(scene.b.context.get(), scene.qp.get()) ==
          std::vector<ibv_event_type>{IBV_EVENT_QP_LAST_WQE_REACHED});
    REQUIRE(modify_state(scene.qp.get(), IBV_QPS_ERR) == 0);
    CHECK(state_of(scene.qp.get()) == IBV_QPS_ERR);
    // The event of another queue pair comes after all events of the first.
    to_init(last.get());
    REQUIRE(modify_state(last.get(), IBV_QPS_ERR) == 0);
    CHECK(events_of(scene.b.context.get(), last.get()).size() == 1);
    CHECK(is_empty(scene.b.recv_cq.get()));
    REQUIRE(modify_state(last.get(), IBV_QPS_RESET) == 0);
    connect_both(scene.a.qp, scene.qp.get());
  }
  CHECK_FALSE(has_event(scene.b.context.get()));
}

TEST_CASE("srq: a move to ERR by the peer causes a last-WQE event too", "[softnic][srq]") {
  SrqScene scene;
  const QpPtr last = make_qp_on(scene.b, scene.srq.get());
  Buffer target(scene.b.pd.get(), 64);
  Region wrong = target.all();
  wrong.rkey += 0x100;
  REQUIRE(post(scene.a.qp, write_work(scene.from.part(0, 64), wrong, 1)) == 0);
  CHECK(poll_one(scene.a.send_cq.get()).status == IBV_WC_REM_ACCESS_ERR);
  const auto types = events_of(scene.b.context.get(), scene.qp.get());
  CHECK(std::count(types.begin(), types.end(), IBV_EVENT_QP_ACCESS_ERR) == 1);
  CHECK(types.size() == 2);
  CHECK(state_of(scene.qp.get()) == IBV_QPS_ERR);
  REQUIRE(modify_state(scene.qp.get(), IBV_QPS_ERR) == 0);
  to_init(last.get());
  REQUIRE(modify_state(last.get(), IBV_QPS_ERR) == 0);
  CHECK(events_of(scene.b.context.get(), last.get()).size() == 1);
}

TEST_CASE("srq: a queue pair without one gets no last-WQE event", "[softnic][srq]") {
  SrqScene scene;
  REQUIRE(modify_state(scene.a.qp, IBV_QPS_ERR) == 0);
  CHECK(state_of(scene.a.qp) == IBV_QPS_ERR);
  CHECK_FALSE(has_event(scene.a.context.get()));
}

TEST_CASE("srq: destroying waits for events to be acknowledged", "[softnic][srq]") {
  SrqScene scene;
  REQUIRE(arm_limit(scene.srq.get(), 2) == 0);
  scene.post_receives(0, 2);
  scene.send(1);
  ibv_async_event event{};
  REQUIRE(ibv_get_async_event(scene.b.context.get(), &event) == 0);
  CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
  scene.qp.reset();
  std::atomic<bool> acknowledged{false};
  std::atomic<bool> was_first{false};
  std::thread destroyer([&] {
    scene.srq.reset();
    was_first = acknowledged.load();
  });
  acknowledged = true;
  ibv_ack_async_event(&event);
  destroyer.join();
  CHECK(was_first);
}

TEST_CASE("srq: unread limit events are dropped with their queue", "[softnic][srq]") {
  SrqScene scene;
  REQUIRE(arm_limit(scene.srq.get(), 2) == 0);
  scene.post_receives(0, 2);
  scene.send(1);
  scene.qp.reset();
  scene.srq.reset();
  scene.fabric.command("h0/softnic1", "down");
  CHECK(next_event(scene.b.context.get()).event_type == IBV_EVENT_PORT_ERR);
  CHECK_FALSE(has_event(scene.b.context.get()));
}

TEST_CASE("srq: a receive taken by a running message is flushed with its queue pair",
          "[softnic][srq]") {
  SrqScene scene(4, kQuick, 0.01);
  Buffer large = scene.a.buffer(kBig);
  Buffer target(scene.b.pd.get(), kBig);
  std::fill_n(large.data(), kBig, std::uint8_t{1});
  scene.fabric.command("h0/softnic0", "rate=5M");
  for (std::uint64_t i = 0; i < depth_of(scene.srq.get()); ++i) {
    REQUIRE(post(scene.srq.get(), recv_work(target.all(), i)) == 0);
  }
  REQUIRE(post(scene.a.qp, send_work(large.all(), 1)) == 0);
  wait_until([&] { return target.peek(0) == 1; }, "the message to begin");
  SECTION("ERR flushes it, and the event comes after that") {
    REQUIRE(modify_state(scene.qp.get(), IBV_QPS_ERR) == 0);
    CHECK(events_of(scene.b.context.get(), scene.qp.get()).size() == 1);
    ibv_wc wc{};
    REQUIRE(ibv_poll_cq(scene.b.recv_cq.get(), 1, &wc) == 1);
    CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
    CHECK(wc.wr_id == 0);
    CHECK(wc.qp_num == scene.qp->qp_num);
    CHECK(is_empty(scene.b.recv_cq.get()));
  }
  SECTION("RESET takes it back, flushed or not") {
    if (GENERATE(false, true)) REQUIRE(modify_state(scene.qp.get(), IBV_QPS_ERR) == 0);
    REQUIRE(modify_state(scene.qp.get(), IBV_QPS_RESET) == 0);
    CHECK(is_empty(scene.b.recv_cq.get()));
  }
  SECTION("so does destruction") {
    scene.qp.reset();
    CHECK(is_empty(scene.b.recv_cq.get()));
  }
  CHECK(poll_one(scene.a.send_cq.get()).status == IBV_WC_RETRY_EXC_ERR);
  CHECK(use_up(scene.b, scene.srq.get(), 100).count(0) == 0);
}

TEST_CASE("srq: a receive that does not fit its message fails on both sides", "[softnic][srq]") {
  SrqScene scene;
  Region bad = scene.into.all();
  ibv_wc_status here = IBV_WC_LOC_LEN_ERR;
  ibv_wc_status there = IBV_WC_REM_INV_REQ_ERR;
  SECTION("too short") { bad.length = 63; }
  SECTION("memory that is none") {
    bad.lkey += 0x100;
    here = IBV_WC_LOC_PROT_ERR;
    there = IBV_WC_REM_OP_ERR;
  }
  REQUIRE(post(scene.srq.get(), recv_work(bad, 5)) == 0);
  scene.post_receives(6, 1);
  REQUIRE(post(scene.a.qp, send_work(scene.from.part(0, 64), 1)) == 0);
  CHECK(poll_one(scene.a.send_cq.get()).status == there);
  const ibv_wc wc = poll_one(scene.b.recv_cq.get());
  CHECK(wc.status == here);
  CHECK(wc.wr_id == 5);
  wait_for_state(scene.qp.get(), IBV_QPS_ERR);
  CHECK(events_of(scene.b.context.get(), scene.qp.get()).size() <= 2);
  CHECK(is_empty(scene.b.recv_cq.get()));  // receives that were not taken are not flushed
  CHECK(use_up(scene.b, scene.srq.get(), 100).count(6) == 1);
}

TEST_CASE("srq: a requester that finds the queue empty sends the limit event", "[softnic][srq]") {
  SrqScene scene;
  // As if the process that took the last receive had died before it sent the event.
  REQUIRE(arm_limit(scene.srq.get(), 2) == 0);
  REQUIRE(post(scene.a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = 1}) == 0);
  CHECK(wait_for_event(scene.b.context.get(), IBV_EVENT_SRQ_LIMIT_REACHED).element.srq ==
        scene.srq.get());
  scene.post_receives(1, 1);
  must_complete(scene.a.send_cq.get(), 1);
}

TEST_CASE("srq: calls on a removed device fail", "[softnic][srq]") {
  const SrqScene scene;
  scene.fabric.command("h0/softnic1", "remove");
  ibv_srq_attr attr{};
  CHECK(ibv_resize_cq(scene.b.recv_cq.get(), 512) == EIO);
  CHECK(arm_limit(scene.srq.get(), 1) == EIO);
  CHECK(ibv_query_srq(scene.srq.get(), &attr) == EIO);
}
