// SPDX-License-Identifier: Apache-2.0
//
// Shared receive queues: who takes which receive, what is told when they run low, and what becomes
// of receives whose queue pair or whose sender goes away.
#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "tests/support/peer_group.h"
#include "tests/support/verbs_extras.h"

using namespace beeline::test;

namespace {

constexpr size_t kBig = 4u << 20;
constexpr Wire kQuick{.timeout = 14, .retry_cnt = 1, .min_rnr_timer = 1};
constexpr Wire kImpatient{.rnr_retry = 0};

// A sender on softnic0 and, on softnic1, a receiver that shares its receives.
struct Scene {
  explicit Scene(uint32_t depth = 16, const Wire& wire = kQuick, double clock_scale = 1.0)
      : fabric(clock_scale), a("softnic0"), b("softnic1"), srq(make_srq(b.pd.get(), depth)) {
    qp = make_qp_on(b, srq.get());
    connect_both(a.qp, qp.get(), wire);
  }

  void send(uint64_t wr_id, size_t size = 64) {
    BL_MUST_OK(post(a.qp, send_work(from.part(0, size), wr_id)));
    must_complete(a.send_cq.get(), wr_id);
  }
  void post_receives(uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) {
      BL_MUST_OK(post(srq.get(), recv_work(into.all(), i)));
    }
  }

  TestFabric fabric;
  Endpoint a;
  Nic b;
  SrqPtr srq;
  QpPtr qp;
  Buffer from = a.buffer(256);
  Buffer into{b.pd.get(), 256};
};

// Reads events until one of `qp` that says it is done with its shared queue.
std::vector<ibv_event_type> events_of(ibv_context* context, ibv_qp* qp) {
  std::vector<ibv_event_type> types;
  for (;;) {
    const ibv_async_event event = next_event(context);
    types.push_back(event.event_type);
    if (event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED && event.element.qp == qp) return types;
  }
}

}  // namespace

TEST_CASE("srq: what is made is at least what was asked for", "[softnic][srq]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  ibv_device_attr device{};
  REQUIRE(ibv_query_device(nic.context.get(), &device) == 0);
  CHECK(device.max_srq > 0);
  CHECK(device.max_srq_wr > 0);
  CHECK(device.max_srq_sge > 0);
  int tag = 0;
  ibv_srq_init_attr init{};
  init.srq_context = &tag;
  init.attr = {100, 3, 50};
  const SrqPtr srq(ibv_create_srq(nic.pd.get(), &init));
  REQUIRE(srq != nullptr);
  CHECK(srq->srq_context == &tag);
  CHECK(srq->pd == nic.pd.get());
  CHECK(srq->context == nic.context.get());
  CHECK(init.attr.max_wr >= 100);
  CHECK(init.attr.max_sge >= 3);
  ibv_srq_attr attr{};
  REQUIRE(ibv_query_srq(srq.get(), &attr) == 0);
  CHECK(attr.max_wr == init.attr.max_wr);
  CHECK(attr.max_sge == init.attr.max_sge);
  CHECK(attr.srq_limit == 0);  // a limit is armed by a modify alone
}

TEST_CASE("srq: the extended call makes the same thing", "[softnic][srq]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  ibv_srq_init_attr_ex init{};
  init.attr = {16, 1, 0};
  init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  init.srq_type = IBV_SRQT_BASIC;
  init.pd = nic.pd.get();
  const SrqPtr srq(ibv_create_srq_ex(nic.context.get(), &init));
  REQUIRE(srq != nullptr);
  use_up(nic, srq.get(), 0);
}

TEST_CASE("srq: more than the device has is refused", "[softnic][srq]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  ibv_device_attr device{};
  REQUIRE(ibv_query_device(nic.context.get(), &device) == 0);
  ibv_srq_init_attr init{};
  init.attr = {16, 1, 0};
  SECTION("depth") { init.attr.max_wr = static_cast<uint32_t>(device.max_srq_wr) + 1; }
  SECTION("pieces") { init.attr.max_sge = static_cast<uint32_t>(device.max_srq_sge) + 1; }
  errno = 0;
  const SrqPtr srq(ibv_create_srq(nic.pd.get(), &init));
  CHECK(srq == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE("srq: the largest one works", "[softnic][srq]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  ibv_device_attr device{};
  REQUIRE(ibv_query_device(nic.context.get(), &device) == 0);
  const SrqPtr srq = make_srq(nic.pd.get(), static_cast<uint32_t>(device.max_srq_wr),
                              static_cast<uint32_t>(device.max_srq_sge));
  const std::vector<RecvWork> works(static_cast<size_t>(device.max_srq_wr));
  CHECK(post_list(srq.get(), works) == 0);
}

TEST_CASE("srq: queues come and go without end", "[softnic][srq]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  for (int i = 0; i < 3000; ++i) {
    const SrqPtr srq = make_srq(nic.pd.get(), 256);
    BL_MUST_OK(post(srq.get(), RecvWork{}));
  }
}

TEST_CASE("srq: receives are taken in order and complete where the queue pair says",
          "[softnic][srq]") {
  Scene scene;
  const CqPtr other_cq = make_cq(scene.b.context.get(), 16);
  ibv_qp_init_attr attr = init_attr(scene.b);
  attr.recv_cq = other_cq.get();
  attr.srq = scene.srq.get();
  const QpPtr other(ibv_create_qp(scene.b.pd.get(), &attr));
  REQUIRE(other != nullptr);
  CHECK(other->srq == scene.srq.get());
  const Endpoint c("softnic0");
  connect_both(c.qp, other.get());
  scene.post_receives(10, 4);
  scene.from.fill(1);
  for (uint64_t i = 0; i < 4; ++i) {
    const bool by_other = i % 2 == 1;
    SendWork work = send_work(scene.from.part(0, 10 + i), i);
    if (by_other) work = SendWork{.opcode = IBV_WR_SEND, .wr_id = i};
    REQUIRE(post(by_other ? c.qp : scene.a.qp, work) == 0);
    must_complete(by_other ? c.send_cq.get() : scene.a.send_cq.get(), i);
    const ibv_wc wc = poll_one(by_other ? other_cq.get() : scene.b.recv_cq.get());
    CHECK(wc.status == IBV_WC_SUCCESS);
    CHECK(wc.opcode == IBV_WC_RECV);
    CHECK(wc.wr_id == 10 + i);
    CHECK(wc.byte_len == (by_other ? 0 : 10 + i));
    CHECK(wc.qp_num == (by_other ? other : scene.qp)->qp_num);
    if (!by_other) CHECK(has_pattern(scene.into.bytes(0, 10 + i), 1));
  }
  CHECK(is_empty(other_cq.get()));
  CHECK(is_empty(scene.b.recv_cq.get()));
}

TEST_CASE("srq: WRITE with immediate uses up a receive and leaves its memory alone",
          "[softnic][srq]") {
  Scene scene;
  Buffer target(scene.b.pd.get(), 256);
  scene.from.fill(1);
  scene.post_receives(5, 1);
  REQUIRE(post(scene.a.qp, write_imm_work(scene.from.all(), target.all(), 77, 1)) == 0);
  must_complete(scene.a.send_cq.get(), 1);
  const ibv_wc wc = poll_one(scene.b.recv_cq.get());
  CHECK(wc.wr_id == 5);
  CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM);
  CHECK(wc.imm_data == 77);
  CHECK(wc.byte_len == 256);
  CHECK(target.has(1));
  CHECK(scene.into.is_zero(0, 256));
  CHECK(use_up(scene.b, scene.srq.get(), 100).count(5) == 0);
}

TEST_CASE("srq: WRITE and READ use up none", "[softnic][srq]") {
  Scene scene;
  Buffer target(scene.b.pd.get(), 256);
  scene.post_receives(5, 1);
  REQUIRE(post(scene.a.qp, write_work(scene.from.all(), target.all(), 1)) == 0);
  REQUIRE(post(scene.a.qp, read_work(scene.from.all(), target.all(), 2)) == 0);
  CHECK(poll_many(scene.a.send_cq.get(), 2)[1].status == IBV_WC_SUCCESS);
  CHECK(is_empty(scene.b.recv_cq.get()));
  CHECK(use_up(scene.b, scene.srq.get(), 100).count(5) == 1);
}

TEST_CASE("srq: a message is spread over the pieces of its receive", "[softnic][srq]") {
  Scene scene;
  const SrqPtr srq = make_srq(scene.b.pd.get(), 4, 3);
  const QpPtr qp = make_qp_on(scene.b, srq.get());
  connect_both(scene.a.qp, qp.get());
  scene.from.fill(1);
  RecvWork work{.wr_id = 1};
  work.local = {scene.into.part(100, 20).sge(), scene.into.part(0, 1).sge(),
                scene.into.part(200, 40).sge()};
  REQUIRE(post(srq.get(), work) == 0);
  scene.send(1, 50);
  CHECK(poll_one(scene.b.recv_cq.get()).byte_len == 50);
  CHECK(has_pattern(scene.into.bytes(100, 20), 1));
  CHECK(has_pattern(scene.into.bytes(0, 1), 1, 20));
  CHECK(has_pattern(scene.into.bytes(200, 29), 1, 21));
  CHECK(scene.into.is_zero(229, 20));
}

TEST_CASE("srq: too many pieces are refused where they stand", "[softnic][srq]") {
  Scene scene;
  ibv_srq_attr attr{};
  REQUIRE(ibv_query_srq(scene.srq.get(), &attr) == 0);
  RecvWork wide{.wr_id = 3};
  wide.local.assign(attr.max_sge + 1, scene.into.part(0, 1).sge());
  size_t accepted = 99;
  CHECK(post_list(scene.srq.get(), {RecvWork{.wr_id = 1}, RecvWork{.wr_id = 2}, wide, {}},
                  &accepted) == EINVAL);
  CHECK(accepted == 2);
  const auto used = use_up(scene.b, scene.srq.get(), 100);
  CHECK(used.count(1) + used.count(2) == 2);
  CHECK(used.count(3) == 0);
}

TEST_CASE("srq: no more receives than the depth, and whole again when they are used",
          "[softnic][srq]") {
  Scene scene(4);
  const uint32_t depth = depth_of(scene.srq.get());
  for (uint64_t round = 0; round < 5; ++round) {
    std::vector<RecvWork> works;
    for (uint64_t i = 0; i < depth + 1; ++i) works.push_back({.wr_id = round * 100 + i});
    size_t accepted = 0;
    REQUIRE(post_list(scene.srq.get(), works, &accepted) == ENOMEM);
    CHECK(accepted == depth);
    CHECK(post(scene.srq.get(), RecvWork{}) == ENOMEM);
    for (uint64_t i = 0; i < depth; ++i) scene.send(i, 0);
    for (uint64_t i = 0; i < depth; ++i) must_complete(scene.b.recv_cq.get(), round * 100 + i);
  }
}

TEST_CASE("srq: an empty one is receiver-not-ready", "[softnic][srq]") {
  SECTION("for good, when the sender does not try again") {
    Scene scene(16, kImpatient);
    REQUIRE(post(scene.a.qp, send_work(scene.from.all(), 1)) == 0);
    CHECK(poll_one(scene.a.send_cq.get()).status == IBV_WC_RNR_RETRY_EXC_ERR);
    CHECK(state_of(scene.qp.get()) == IBV_QPS_RTS);
  }
  SECTION("until one is posted") {
    Scene scene;
    for (uint64_t i = 0; i < 50; ++i) {
      REQUIRE(post(scene.a.qp, send_work(scene.from.all(), i)) == 0);
      CHECK(is_empty(scene.a.send_cq.get()));
      scene.post_receives(i, 1);
      must_complete(scene.b.recv_cq.get(), i);
      must_complete(scene.a.send_cq.get(), i);
    }
  }
}

TEST_CASE("srq: a queue pair that shares has no receives of its own", "[softnic][srq]") {
  Scene scene;
  CHECK(post(scene.qp.get(), recv_work(scene.into.all(), 1)) != 0);
  scene.post_receives(2, 1);
  scene.send(1);
  must_complete(scene.b.recv_cq.get(), 2);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  REQUIRE(ibv_query_qp(scene.qp.get(), &attr, IBV_QP_CAP, &init) == 0);
  CHECK(init.srq == scene.srq.get());
}

TEST_CASE("srq: what is in use is not destroyed", "[softnic][srq]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  SrqPtr srq = make_srq(nic.pd.get(), 8);
  QpPtr one = make_qp_on(nic, srq.get());
  QpPtr two = make_qp_on(nic, srq.get());
  CHECK(ibv_destroy_srq(srq.get()) == EBUSY);
  one.reset();
  CHECK(ibv_destroy_srq(srq.get()) == EBUSY);
  CHECK(ibv_dealloc_pd(nic.pd.get()) == EBUSY);
  two.reset();
  ibv_pd* pd = ibv_alloc_pd(nic.context.get());
  SrqPtr alone = make_srq(pd, 8);
  CHECK(ibv_dealloc_pd(pd) == EBUSY);
  alone.reset();
  CHECK(ibv_dealloc_pd(pd) == 0);
  CHECK(post(srq.get(), RecvWork{}) == 0);  // destroyed below with a receive in it
}

TEST_CASE("srq: the limit is told once and can be armed again", "[softnic][srq]") {
  Scene scene;
  scene.post_receives(0, 5);
  for (int round = 0; round < 3; ++round) {
    INFO("round " << round);
    REQUIRE(arm_limit(scene.srq.get(), 3) == 0);
    ibv_srq_attr attr{};
    REQUIRE(ibv_query_srq(scene.srq.get(), &attr) == 0);
    CHECK(attr.srq_limit == 3);
    scene.send(1);
    scene.send(2);
    CHECK_FALSE(has_event(scene.b.context.get()));  // three are left: not below
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

TEST_CASE("srq: an unarmed limit is not told", "[softnic][srq]") {
  Scene scene;
  scene.post_receives(0, 5);
  SECTION("never armed") {}
  SECTION("armed and taken back") {
    REQUIRE(arm_limit(scene.srq.get(), 3) == 0);
    REQUIRE(arm_limit(scene.srq.get(), 0) == 0);
  }
  for (uint64_t i = 0; i < 5; ++i) scene.send(i);
  CHECK_FALSE(has_event(scene.b.context.get()));
}

TEST_CASE("srq: receives posted in between keep the limit from being reached", "[softnic][srq]") {
  Scene scene;
  scene.post_receives(0, 3);
  REQUIRE(arm_limit(scene.srq.get(), 2) == 0);
  for (uint64_t i = 0; i < 40; ++i) {
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
  Scene scene;
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

TEST_CASE("srq: a receive that does not fit its message fails on both sides", "[softnic][srq]") {
  Scene scene;
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
  CHECK(is_empty(scene.b.recv_cq.get()));  // what was not taken is not flushed
  CHECK(use_up(scene.b, scene.srq.get(), 100).count(6) == 1);
}

TEST_CASE("srq: the last receive is told once for each move to ERR", "[softnic][srq]") {
  Scene scene;
  const QpPtr last = make_qp_on(scene.b, scene.srq.get());
  scene.post_receives(0, 3);
  for (int round = 0; round < 3; ++round) {
    INFO("round " << round);
    REQUIRE(modify_state(scene.qp.get(), IBV_QPS_ERR) == 0);
    CHECK(events_of(scene.b.context.get(), scene.qp.get()) ==
          std::vector<ibv_event_type>{IBV_EVENT_QP_LAST_WQE_REACHED});
    REQUIRE(modify_state(scene.qp.get(), IBV_QPS_ERR) == 0);
    CHECK(state_of(scene.qp.get()) == IBV_QPS_ERR);
    // Another queue pair's event stands behind all that might still come of the first.
    to_init(last.get());
    REQUIRE(modify_state(last.get(), IBV_QPS_ERR) == 0);
    CHECK(events_of(scene.b.context.get(), last.get()).size() == 1);
    CHECK(is_empty(scene.b.recv_cq.get()));
    REQUIRE(modify_state(last.get(), IBV_QPS_RESET) == 0);
    connect_both(scene.a.qp, scene.qp.get());
  }
  CHECK_FALSE(has_event(scene.b.context.get()));
}

TEST_CASE("srq: a queue pair that its peer broke tells of its last receive too", "[softnic][srq]") {
  Scene scene;
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

TEST_CASE("srq: a queue pair without one has no last receive to tell of", "[softnic][srq]") {
  Scene scene;
  REQUIRE(modify_state(scene.a.qp, IBV_QPS_ERR) == 0);
  CHECK(state_of(scene.a.qp) == IBV_QPS_ERR);
  CHECK_FALSE(has_event(scene.a.context.get()));
}

TEST_CASE("srq: events that are not acknowledged hold up the end", "[softnic][srq]") {
  Scene scene;
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

TEST_CASE("srq: a limit nobody has read about goes with its queue", "[softnic][srq]") {
  Scene scene;
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
  Scene scene(4, kQuick, 0.01);
  Buffer large = scene.a.buffer(kBig);
  Buffer target(scene.b.pd.get(), kBig);
  std::fill_n(large.data(), kBig, uint8_t{1});
  scene.fabric.command("h0/softnic0", "rate=5M");
  for (uint64_t i = 0; i < depth_of(scene.srq.get()); ++i) {
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

TEST_CASE("srq: a reset takes back completions that were not polled, and their receives",
          "[softnic][srq]") {
  Scene scene(8);
  const QpPtr other = make_qp_on(scene.b, scene.srq.get());
  const Endpoint c("softnic0");
  connect_both(c.qp, other.get());
  scene.post_receives(0, 6);
  for (uint64_t i = 0; i < 6; ++i) {
    const bool by_other = i % 2 == 1;
    REQUIRE(post(by_other ? c.qp : scene.a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = i}) == 0);
    must_complete(by_other ? c.send_cq.get() : scene.a.send_cq.get(), i);
  }
  SECTION("reset") { REQUIRE(modify_state(scene.qp.get(), IBV_QPS_RESET) == 0); }
  SECTION("destruction") { scene.qp.reset(); }
  for (const uint64_t wr_id : {1u, 3u, 5u}) must_complete(scene.b.recv_cq.get(), wr_id);
  CHECK(is_empty(scene.b.recv_cq.get()));
  use_up(scene.b, scene.srq.get(), 100);
}

TEST_CASE("srq: ERR keeps completions that were not polled", "[softnic][srq]") {
  Scene scene(8);
  scene.post_receives(0, 4);
  for (uint64_t i = 0; i < 3; ++i) scene.send(i);
  REQUIRE(modify_state(scene.qp.get(), IBV_QPS_ERR) == 0);
  for (uint64_t i = 0; i < 3; ++i) must_complete(scene.b.recv_cq.get(), i);
  CHECK(is_empty(scene.b.recv_cq.get()));
  CHECK(use_up(scene.b, scene.srq.get(), 100).count(3) == 1);
}

TEST_CASE("srq: threads that post lose nothing and double nothing", "[softnic][srq]") {
  constexpr size_t kThreads = 3;
  constexpr uint64_t kEach = 400;
  Scene scene(64);
  std::vector<PeerBody> bodies(kThreads, [&](Peer& peer) {
    for (uint64_t i = 0; i < kEach; ++i) {
      const RecvWork work{.wr_id = peer.rank() * kEach + i};
      wait_until([&] { return post(scene.srq.get(), work) == 0; }, "room");
    }
  });
  bodies.push_back([&](Peer&) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < kThreads * kEach; ++i) {
      BL_MUST_OK(post(scene.a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = i}));
      must_complete(scene.a.send_cq.get(), i);
      const ibv_wc wc = poll_one(scene.b.recv_cq.get());
      BL_MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id < kThreads * kEach);
      BL_MUST(seen.insert(wc.wr_id).second);
    }
  });
  run_peers(PeerMode::kThreads, bodies);
}

namespace {

constexpr size_t kClients = 4;
constexpr uint64_t kEach = 300;
constexpr size_t kSlot = 4096;
constexpr uint32_t kShared = 16;

// The I-th message of a client. Two of three leave their bytes in the receive itself.
bool goes_to_receive(uint64_t i) { return i % 3 != 2; }
uint32_t seed_of(size_t client, uint64_t i) { return static_cast<uint32_t>(client << 16 | i); }
size_t size_of(uint64_t i) { return i * 37 % kSlot; }

void run_client(Peer& peer) {
  Endpoint end("softnic0");
  Buffer from = end.buffer(kSlot);
  peer.send(0, address_of(end.qp));
  connect(end.qp, peer.receive<QpAddress>(0));
  const auto target = peer.receive<Region>(0);
  for (uint64_t i = 0; i < kEach; ++i) {
    from.fill(seed_of(peer.rank(), i));
    const Region bytes = from.part(0, size_of(i));
    const auto imm = static_cast<uint32_t>(i);
    SendWork work =
        goes_to_receive(i) ? send_imm_work(bytes, imm, i) : write_imm_work(bytes, target, imm, i);
    const bool told = i % 4 == 3;
    BL_MUST_OK(post(end.qp, told ? work : unsignaled(work)));
    // Unsignalled work reads its memory until something behind it has completed.
    if (!told) BL_MUST_OK(post(end.qp, nothing_work(i)));
    must_complete(end.send_cq.get(), i);
  }
  peer.meet();
}

void run_server(Peer& peer) {
  const Nic nic("softnic1", 1024);
  const SrqPtr srq = make_srq(nic.pd.get(), kShared);
  std::vector<QpPtr> qps;
  std::vector<Buffer> targets;
  std::map<uint32_t, size_t> clients;
  for (size_t client = 1; client <= kClients; ++client) {
    qps.push_back(make_qp_on(nic, srq.get()));
    targets.emplace_back(nic.pd.get(), kSlot);
    clients[qps.back()->qp_num] = client;
    connect(qps.back().get(), peer.receive<QpAddress>(client), kQuick);
    peer.send(client, address_of(qps.back().get()));
    peer.send(client, targets.back().all());
  }
  Buffer slots(nic.pd.get(), kShared * kSlot);
  std::map<uint64_t, size_t> posted;  // wr_id -> slot
  uint64_t next_id = 0;
  const auto post_slot = [&](size_t slot) {
    BL_MUST_OK(post(srq.get(), recv_work(slots.part(slot * kSlot, kSlot), next_id)));
    posted[next_id++] = slot;
  };
  for (size_t slot = 0; slot < kShared; ++slot) post_slot(slot);
  std::vector<uint64_t> next(kClients + 1, 0);
  for (uint64_t n = 0; n < kClients * kEach; ++n) {
    const ibv_wc wc = poll_one(nic.recv_cq.get());
    BL_MUST(wc.status == IBV_WC_SUCCESS);
    const auto receive = posted.find(wc.wr_id);
    BL_MUST(receive != posted.end());
    const size_t slot = receive->second;
    posted.erase(receive);
    const size_t client = clients.at(wc.qp_num);
    const uint64_t i = next[client]++;
    BL_MUST(wc.imm_data == i);
    BL_MUST(wc.byte_len == size_of(i));
    BL_MUST(wc.opcode == (goes_to_receive(i) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM));
    if (goes_to_receive(i)) {
      BL_MUST(has_pattern(slots.bytes(slot * kSlot, size_of(i)), seed_of(client, i)));
    }
    post_slot(slot);
  }
  BL_MUST(slots.guards_intact());
  BL_MUST(is_empty(nic.recv_cq.get()));
  peer.meet();
}

// Sends large messages until somebody ends it.
void run_flood(Peer& peer) {
  peer.receive<bool>(0);
  Endpoint end("softnic0");
  Buffer from = end.buffer(kBig);
  std::fill_n(from.data(), kBig, uint8_t{1});
  peer.send(0, address_of(end.qp));
  connect(end.qp, peer.receive<QpAddress>(0), kQuick);
  for (;;) {
    BL_MUST_OK(post(end.qp, send_work(from.all())));
    BL_MUST(poll_one(end.send_cq.get()).status == IBV_WC_SUCCESS);
  }
}

enum class Farewell { kError, kReset, kDestroy };

// What becomes of a receive that a dead process had taken.
void survive_floods(Peer& peer, Farewell farewell) {
  constexpr uint32_t kDepth = 4;
  const Nic nic("softnic1");
  const SrqPtr srq = make_srq(nic.pd.get(), kDepth);
  Buffer into(nic.pd.get(), kBig);
  uint64_t next_id = 0;
  std::set<uint64_t> completed;
  for (size_t client = 1; client < peer.count(); ++client) {
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
    for (const uint64_t wr_id : use_up(nic, srq.get(), next_id)) {
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

TEST_CASE("srq: no receive is lost to queue pairs that come and go under traffic",
          "[softnic][srq]") {
  constexpr size_t kPairs = 3;
  constexpr size_t kTurns = 150;
  const TestFabric fabric(0.001);
  const Nic a("softnic0", 4096);
  const Nic b("softnic1", 4096);
  const SrqPtr srq = make_srq(b.pd.get(), 8);
  Buffer from(a.pd.get(), 300'000);
  Buffer into(b.pd.get(), 300'000);
  std::vector<QpPtr> senders;
  std::vector<QpPtr> receivers;
  for (size_t i = 0; i < kPairs; ++i) {
    senders.push_back(make_qp(a));
    receivers.push_back(make_qp_on(b, srq.get()));
    connect_both(senders[i].get(), receivers[i].get(), kQuick);
  }
  std::atomic<bool> done{false};
  std::atomic<uint64_t> next_id{0};
  std::atomic<uint64_t> received{0};
  std::set<uint64_t> completed;
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
    for (uint64_t n = 0; !done; ++n) {
      ibv_qp* qp = senders[n % kPairs].get();
      // Some pairs are apart at the moment, and refuse.
      (void)post(qp, send_work(from.part(0, n % 4 == 0 ? 300'000 : 100), n));
      while (ibv_poll_cq(a.send_cq.get(), 1, &wc) == 1) {
      }
    }
  });
  for (size_t turn = 0; turn < kTurns; ++turn) {
    ibv_qp* one = senders[turn % kPairs].get();
    ibv_qp* other = receivers[turn % kPairs].get();
    if (turn % 2 == 0) CHECK(modify_state(other, IBV_QPS_ERR) == 0);
    CHECK(modify_state(other, IBV_QPS_RESET) == 0);
    connect_both(one, other, kQuick);
    const uint64_t before = received;
    wait_until([&] { return received > before + 3; }, "traffic");
  }
  done = true;
  filler.join();
  flood.join();
  for (const QpPtr& qp : receivers) CHECK(modify_state(qp.get(), IBV_QPS_ERR) == 0);
  collect();
  senders.clear();
  receivers.clear();
  for (const uint64_t wr_id : use_up(b, srq.get(), next_id)) {
    twice = !completed.insert(wr_id).second || twice;
  }
  CHECK_FALSE(twice);
  CHECK(completed.size() > kTurns);
}

TEST_CASE("srq: no receive is lost to a sender that is killed", "[softnic][srq]") {
  if (!kProcessesWork) return;
  const auto farewell = GENERATE(Farewell::kError, Farewell::kReset, Farewell::kDestroy);
  const bool slowly = GENERATE(true, false);
  const TestFabric fabric(0.01);
  if (slowly) fabric.command("h0/softnic0", "rate=40M");
  std::vector<PeerBody> bodies(slowly ? 4 : 9, run_flood);
  bodies[0] = [farewell](Peer& peer) { survive_floods(peer, farewell); };
  run_peers(PeerMode::kProcesses, bodies);
}
