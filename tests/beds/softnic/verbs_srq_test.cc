// SPDX-License-Identifier: Apache-2.0
//
// Shared receive queues: creation, the order of receives, and receives whose queue pair is
// destroyed.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "tests/beds/softnic/arena_view.h"
#include "tests/beds/softnic/srq_scene.h"
#include "tests/support/peer_group.h"

using namespace beeline::test;

TEST_CASE("srq: a queue has at least the requested size", "[softnic][srq]") {
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
  CHECK(attr.srq_limit == 0);  // only ibv_modify_srq arms a limit
}

TEST_CASE("srq: the extended call creates the same queue", "[softnic][srq]") {
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

TEST_CASE("srq: the largest one works", "[softnic][srq]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  ibv_device_attr device{};
  REQUIRE(ibv_query_device(nic.context.get(), &device) == 0);
  const SrqPtr srq = make_srq(nic.pd.get(), static_cast<std::uint32_t>(device.max_srq_wr),
                              static_cast<std::uint32_t>(device.max_srq_sge));
  const std::vector<RecvWork> works(static_cast<std::size_t>(device.max_srq_wr));
  CHECK(post_list(srq.get(), works) == 0);
}

TEST_CASE("srq: queues can be created and destroyed without leaks", "[softnic][srq]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  for (int i = 0; i < 3000; ++i) {
    const SrqPtr srq = make_srq(nic.pd.get(), 256);
    BL_MUST_OK(post(srq.get(), RecvWork{}));
  }
}

TEST_CASE("srq: receives are taken in order and complete in the queue pair's CQ",
          "[softnic][srq]") {
  SrqScene scene;
  const CqPtr other_cq = make_cq(scene.b.context.get(), 16);
  ibv_qp_init_attr attr = init_attr(scene.b);
  attr.recv_cq = other_cq.get();
  attr.srq = scene.srq.get();
  const QpPtr other(ibv_create_qp(scene.b.pd.get(), &attr));
  REQUIRE(other != nullptr);
  CHECK(other->srq == scene.srq.get());
  ibv_qp_attr queried{};
  REQUIRE(ibv_query_qp(other.get(), &queried, IBV_QP_CAP, &attr) == 0);
  CHECK(attr.srq == scene.srq.get());
  const Endpoint c("softnic0");
  connect_both(c.qp, other.get());
  scene.post_receives(10, 4);
  scene.from.fill(1);
  for (std::uint64_t i = 0; i < 4; ++i) {
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

TEST_CASE("srq: WRITE and READ consume no receives", "[softnic][srq]") {
  SrqScene scene;
  Buffer target(scene.b.pd.get(), 256);
  scene.post_receives(5, 1);
  REQUIRE(post(scene.a.qp, write_work(scene.from.all(), target.all(), 1)) == 0);
  REQUIRE(post(scene.a.qp, read_work(scene.from.all(), target.all(), 2)) == 0);
  CHECK(poll_many(scene.a.send_cq.get(), 2)[1].status == IBV_WC_SUCCESS);
  CHECK(is_empty(scene.b.recv_cq.get()));
  CHECK(use_up(scene.b, scene.srq.get(), 100).count(5) == 1);
}

TEST_CASE("srq: a message is scattered over the SGEs of its receive", "[softnic][srq]") {
  SrqScene scene;
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

TEST_CASE("srq: a receive with too many SGEs is refused", "[softnic][srq]") {
  SrqScene scene;
  ibv_srq_attr attr{};
  REQUIRE(ibv_query_srq(scene.srq.get(), &attr) == 0);
  RecvWork wide{.wr_id = 3};
  wide.local.assign(attr.max_sge + 1, scene.into.part(0, 1).sge());
  std::size_t accepted = 99;
  CHECK(post_list(scene.srq.get(), {RecvWork{.wr_id = 1}, RecvWork{.wr_id = 2}, wide, {}},
                  &accepted) == EINVAL);
  CHECK(accepted == 2);
  const auto used = use_up(scene.b, scene.srq.get(), 100);
  CHECK(used.count(1) + used.count(2) == 2);
  CHECK(used.count(3) == 0);
}

TEST_CASE("srq: no more receives than the depth, and all of them again after use",
          "[softnic][srq]") {
  SrqScene scene(4);
  const std::uint32_t depth = depth_of(scene.srq.get());
  for (std::uint64_t round = 0; round < 5; ++round) {
    std::vector<RecvWork> works;
    for (std::uint64_t i = 0; i < depth + 1; ++i) works.push_back({.wr_id = round * 100 + i});
    std::size_t accepted = 0;
    REQUIRE(post_list(scene.srq.get(), works, &accepted) == ENOMEM);
    CHECK(accepted == depth);
    CHECK(post(scene.srq.get(), RecvWork{}) == ENOMEM);
    for (std::uint64_t i = 0; i < depth; ++i) scene.send(i, 0);
    for (std::uint64_t i = 0; i < depth; ++i) must_complete(scene.b.recv_cq.get(), round * 100 + i);
  }
}

TEST_CASE("srq: a queue in use cannot be destroyed", "[softnic][srq]") {
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

TEST_CASE("srq: a reset removes unpolled completions and frees their receives", "[softnic][srq]") {
  SrqScene scene(8);
  const QpPtr other = make_qp_on(scene.b, scene.srq.get());
  const Endpoint c("softnic0");
  connect_both(c.qp, other.get());
  scene.post_receives(0, 6);
  for (std::uint64_t i = 0; i < 6; ++i) {
    const bool by_other = i % 2 == 1;
    REQUIRE(post(by_other ? c.qp : scene.a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = i}) == 0);
    must_complete(by_other ? c.send_cq.get() : scene.a.send_cq.get(), i);
  }
  SECTION("reset") { REQUIRE(modify_state(scene.qp.get(), IBV_QPS_RESET) == 0); }
  SECTION("destruction") { scene.qp.reset(); }
  for (const std::uint64_t wr_id : {1u, 3u, 5u}) must_complete(scene.b.recv_cq.get(), wr_id);
  CHECK(is_empty(scene.b.recv_cq.get()));
  use_up(scene.b, scene.srq.get(), 100);
}

TEST_CASE("srq: ERR keeps unpolled completions", "[softnic][srq]") {
  SrqScene scene(8);
  scene.post_receives(0, 4);
  for (std::uint64_t i = 0; i < 3; ++i) scene.send(i);
  REQUIRE(modify_state(scene.qp.get(), IBV_QPS_ERR) == 0);
  for (std::uint64_t i = 0; i < 3; ++i) must_complete(scene.b.recv_cq.get(), i);
  CHECK(is_empty(scene.b.recv_cq.get()));
  CHECK(use_up(scene.b, scene.srq.get(), 100).count(3) == 1);
}

TEST_CASE("srq: concurrent posts lose and duplicate nothing", "[softnic][srq]") {
  constexpr std::size_t kThreads = 3;
  constexpr std::uint64_t kEach = 400;
  SrqScene scene(64);
  std::vector<PeerBody> bodies(kThreads, [&](Peer& peer) {
    for (std::uint64_t i = 0; i < kEach; ++i) {
      const RecvWork work{.wr_id = peer.rank() * kEach + i};
      wait_until([&] { return post(scene.srq.get(), work) == 0; }, "room");
    }
  });
  bodies.push_back([&](Peer&) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < kThreads * kEach; ++i) {
      BL_MUST_OK(post(scene.a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = i}));
      must_complete(scene.a.send_cq.get(), i);
      const ibv_wc wc = poll_one(scene.b.recv_cq.get());
      BL_MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id < kThreads * kEach);
      BL_MUST(seen.insert(wc.wr_id).second);
    }
  });
  run_peers(PeerMode::kThreads, bodies);
}

TEST_CASE("srq: a requester that died while it took a receive loses none", "[softnic][srq]") {
  constexpr std::uint32_t kDepth = 2;
  SrqScene scene(kDepth);
  const QpPtr other = make_qp_on(scene.b, scene.srq.get());
  scene.post_receives(0, kDepth);
  // As if a process had died after it took the first receive for the other queue pair and before it
  // advanced the queue.
  const ArenaView view(scene.fabric, other.get());
  softnic::SrqRecord& srq = view.srq_of(other.get());
  view.get().slot(srq, view.get().fifo(srq, 0).load()).holder.store(other->qp_num);
  REQUIRE(modify_state(other.get(), IBV_QPS_RESET) == 0);
  scene.post_receives(kDepth, 1);
  for (std::uint64_t i = 0; i < 20; ++i) {
    INFO("message " << i);
    scene.send(i);
    CHECK(poll_one(scene.b.recv_cq.get()).status == IBV_WC_SUCCESS);
    scene.post_receives(10 + i, 1);
  }
  use_up(scene.b, scene.srq.get(), 100);
}

TEST_CASE("srq: the memory of its receives is of its own protection domain", "[softnic][srq]") {
  SrqScene scene;
  const PdPtr other(ibv_alloc_pd(scene.b.context.get()));
  const SrqPtr srq = make_srq(other.get(), 4);
  const QpPtr qp = make_qp_on(scene.b, srq.get());
  connect_both(scene.a.qp, qp.get(), kQuick);
  Buffer ours(other.get(), 64);
  scene.from.fill(1);
  SECTION("is written") {
    BL_MUST_OK(post(srq.get(), recv_work(ours.all(), 1)));
    scene.send(1);
    must_complete(scene.b.recv_cq.get(), 1);
    CHECK(ours.has(1));
  }
  SECTION("of the queue pair's is refused") {
    BL_MUST_OK(post(srq.get(), recv_work(scene.into.all(), 1)));
    BL_MUST_OK(post(scene.a.qp, send_work(scene.from.all(), 1)));
    CHECK(poll_one(scene.b.recv_cq.get()).status == IBV_WC_LOC_PROT_ERR);
    CHECK(scene.into.is_zero(0, scene.into.size()));
  }
}

TEST_CASE("srq: a forked child cannot post to a shared queue", "[softnic][srq]") {
  if (!kProcessesWork) return;
  SrqScene scene;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(post(scene.srq.get(), RecvWork{}) != 0 ? 0 : 1);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(status == 0);
}
