// SPDX-License-Identifier: Apache-2.0
//
// Resizing of completion queues in use.
#include <atomic>

#include "tests/support/peer_group.h"
#include "tests/support/verbs_extras.h"

using namespace beeline::test;

namespace {

// A queue pair that is connected to itself. Its send completion queue has a given size.
struct ResizeScene {
  explicit ResizeScene(int cqe)
      : nic("softnic0"), cq(make_cq(nic.context.get(), cqe)), qp(make(nic, cq.get())) {
    connect(qp.get(), address_of(qp.get()));
  }

  static QpPtr make(const Nic& nic, ibv_cq* cq) {
    ibv_qp_init_attr init = init_attr(nic, {.send_depth = 4096});
    init.send_cq = cq;
    return QpPtr(ibv_create_qp(nic.pd.get(), &init));
  }
  void complete(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = first; i < first + count; ++i) {
      BL_MUST_OK(post(qp.get(), nothing_work(i)));
    }
  }
  void must_poll(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = first; i < first + count; ++i) must_complete(cq.get(), i);
  }

  TestFabric fabric;
  Nic nic;
  CqPtr cq;
  QpPtr qp;
};

}  // namespace

TEST_CASE("resize: unpolled completions are kept in order", "[softnic][resize]") {
  ResizeScene scene(64);
  // The ring has wrapped around, so that the unpolled completions extend over its end.
  for (std::uint64_t round = 0; round < 5; ++round) {
    scene.complete(0, 37);
    scene.must_poll(0, 37);
  }
  scene.complete(0, 50);
  scene.must_poll(0, 10);
  for (const int size : {65, 1000, 41, 40, 4096, 64}) {
    INFO("size " << size);
    REQUIRE(ibv_resize_cq(scene.cq.get(), size) == 0);
  }
  scene.must_poll(10, 25);
  REQUIRE(ibv_resize_cq(scene.cq.get(), 15) == 0);
  scene.must_poll(35, 15);
  CHECK(is_empty(scene.cq.get()));
  scene.complete(100, 15);
  scene.must_poll(100, 15);
}

TEST_CASE("resize: a grown queue holds as many entries as it reports", "[softnic][resize]") {
  ResizeScene scene(8);
  scene.complete(0, 5);
  REQUIRE(ibv_resize_cq(scene.cq.get(), 200) == 0);
  const auto size = static_cast<std::uint64_t>(scene.cq->cqe);
  scene.complete(5, size - 5);
  CHECK_FALSE(has_event(scene.nic.context.get()));
  SECTION("full") { scene.must_poll(0, size); }
  SECTION("one too many") {
    scene.complete(size, 1);
    CHECK(next_event(scene.nic.context.get()).event_type == IBV_EVENT_CQ_ERR);
  }
}

TEST_CASE("resize: a shrunk queue overruns sooner", "[softnic][resize]") {
  ResizeScene scene(512);
  REQUIRE(ibv_resize_cq(scene.cq.get(), 8) == 0);
  const auto size = static_cast<std::uint64_t>(scene.cq->cqe);
  for (int round = 0; round < 3; ++round) {
    scene.complete(0, size);
    scene.must_poll(0, size);
  }
  CHECK_FALSE(has_event(scene.nic.context.get()));
  scene.complete(0, size + 1);
  CHECK(next_event(scene.nic.context.get()).event_type == IBV_EVENT_CQ_ERR);
}

TEST_CASE("resize: it can be repeated without leaks", "[softnic][resize]") {
  ResizeScene scene(64);
  scene.complete(0, 20);
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(ibv_resize_cq(scene.cq.get(), i % 2 == 0 ? 200000 : 300000) == 0);
  }
  scene.must_poll(0, 20);
}

TEST_CASE("resize: an armed queue stays armed", "[softnic][resize]") {
  ResizeScene scene(64);
  const ChannelPtr channel = make_channel(scene.nic.context.get());
  const CqPtr cq = make_cq(channel.get(), 16);
  const QpPtr qp = ResizeScene::make(scene.nic, cq.get());
  connect(qp.get(), address_of(qp.get()));
  REQUIRE(ibv_req_notify_cq(cq.get(), 0) == 0);
  REQUIRE(ibv_resize_cq(cq.get(), 100) == 0);
  CHECK_FALSE(has_cq_event(channel.get()));
  REQUIRE(post(qp.get(), nothing_work(1)) == 0);
  CHECK(next_cq_event(channel.get()) == cq.get());
  ibv_ack_cq_events(cq.get(), 1);
}

TEST_CASE("resize: an extended queue can be resized too", "[softnic][resize]") {
  ResizeScene scene(64);
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 8;
  ibv_cq_ex* ex = ibv_create_cq_ex(scene.nic.context.get(), &attr);
  REQUIRE(ex != nullptr);
  const CqPtr cq(ibv_cq_ex_to_cq(ex));
  const QpPtr qp = ResizeScene::make(scene.nic, cq.get());
  connect(qp.get(), address_of(qp.get()));
  for (std::uint64_t i = 0; i < 8; ++i) REQUIRE(post(qp.get(), nothing_work(i)) == 0);
  REQUIRE(ibv_resize_cq(cq.get(), 100) == 0);
  for (std::uint64_t i = 8; i < 100; ++i) REQUIRE(post(qp.get(), nothing_work(i)) == 0);
  ibv_poll_cq_attr none{};
  wait_until([&] { return ibv_start_poll(ex, &none) == 0; }, "the first completion");
  for (std::uint64_t i = 0; i < 100; ++i) {
    if (ex->wr_id != i) CHECK(ex->wr_id == i);
    if (i < 99) wait_until([&] { return ibv_next_poll(ex) == 0; }, "the next completion");
  }
  ibv_end_poll(ex);
}

TEST_CASE("resize: during traffic no completion is lost or reordered", "[softnic][resize]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  constexpr std::uint64_t kMessages = 20000;
  constexpr std::uint64_t kWindow = 32;
  const TestFabric fabric;
  run_peers(mode,
            {[](Peer& peer) {
               Endpoint end("softnic0", {.send_depth = 64});
               connect(end.qp, peer.exchange(address_of(end.qp)));
               for (std::uint64_t i = 0; i < kMessages; ++i) {
                 SendWork work{.opcode = IBV_WR_SEND_WITH_IMM,
                               .imm = static_cast<std::uint32_t>(i)};
                 work.wr_id = i;
                 BL_MUST_OK(post(end.qp, work));
                 if (i >= 16) must_complete(end.send_cq.get(), i - 16);
               }
               for (std::uint64_t i = kMessages - 16; i < kMessages; ++i)
                 must_complete(end.send_cq.get(), i);
               peer.meet();
             },
             [](Peer& peer) {
               Endpoint end("softnic1", {.recv_depth = kWindow, .cqe = kWindow});
               connect(end.qp, peer.exchange(address_of(end.qp)), {.min_rnr_timer = 1});
               std::atomic<bool> done{false};
               std::thread resizer([&] {
                 constexpr int kSizes[] = {kWindow, 100, 33, 1000, 64, 5000};
                 for (std::size_t turn = 0; !done; ++turn) {
                   if (ibv_resize_cq(end.recv_cq.get(), kSizes[turn % std::size(kSizes)]) != 0)
                     break;
                 }
               });
               try {
                 for (std::uint64_t i = 0; i < kWindow; ++i)
                   BL_MUST_OK(post(end.qp, RecvWork{.wr_id = i}));
                 for (std::uint64_t i = 0; i < kMessages; ++i) {
                   const ibv_wc wc = poll_one(end.recv_cq.get());
                   BL_MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == i && wc.imm_data == i);
                   BL_MUST_OK(post(end.qp, RecvWork{.wr_id = i + kWindow}));
                 }
               } catch (...) {
                 done = true;
                 resizer.join();
                 throw;
               }
               BL_MUST(!done.exchange(true));
               resizer.join();
               BL_MUST(end.recv_cq->cqe >= static_cast<int>(kWindow));
               peer.meet();
             }});
}
