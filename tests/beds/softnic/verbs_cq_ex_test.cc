// SPDX-License-Identifier: Apache-2.0
//
// Extended completion queues (ibv_cq_ex): completions one at a time, with functions for their
// fields.
#include <atomic>

#include "tests/support/peer_group.h"
#include "tests/support/verbs_extras.h"

using namespace beeline::test;

namespace {

constexpr std::uint64_t kFields =
    IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM;

ibv_cq_init_attr_ex cq_attr(std::uint64_t wc_flags = kFields) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 64;
  attr.wc_flags = wc_flags;
  return attr;
}

// B's completions of both kinds go to one extended queue.
struct CqExScene {
  CqExScene() : a("softnic0"), b("softnic1") {
    ibv_cq_init_attr_ex attr = cq_attr();
    ex = ibv_create_cq_ex(b.context.get(), &attr);
    BL_MUST(ex != nullptr);
    owned_cq.reset(ibv_cq_ex_to_cq(ex));
    ibv_qp_init_attr init = init_attr(b);
    init.send_cq = owned_cq.get();
    init.recv_cq = owned_cq.get();
    qp.reset(ibv_create_qp(b.pd.get(), &init));
    BL_MUST(qp != nullptr);
    connect_both(a.qp, qp.get());
  }

  ibv_cq* cq() { return owned_cq.get(); }
  int start() {
    ibv_poll_cq_attr attr{};
    return ibv_start_poll(ex, &attr);
  }
  void must_start() {
    wait_until([&] { return start() == 0; }, "a completion");
  }
  // Completions of B: receives 0 .. count-1.
  void fill_queue(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      BL_MUST_OK(post(qp.get(), RecvWork{.wr_id = i}));
      BL_MUST_OK(post(a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = i}));
      must_complete(a.send_cq.get(), i);
    }
  }

  TestFabric fabric;
  Endpoint a;
  Nic b;
  ibv_cq_ex* ex;
  CqPtr owned_cq;
  QpPtr qp;
  Buffer from = a.buffer(100);
  Buffer into{b.pd.get(), 100};
};

// Passes some time: a hundred round trips on another queue.
void pass_time() {
  const Endpoint c("softnic0");
  connect(c.qp, address_of(c.qp));
  for (std::uint64_t i = 0; i < 100; ++i) {
    BL_MUST_OK(post(c.qp, nothing_work(i)));
    must_complete(c.send_cq.get(), i);
  }
}

}  // namespace

TEST_CASE("cq_ex: polling an empty queue returns ENOENT and has no effect", "[softnic][cq_ex]") {
  CqExScene scene;
  CHECK(scene.start() == ENOENT);
  CHECK(scene.start() == ENOENT);
  scene.fill_queue(1);
  REQUIRE(scene.start() == 0);
  CHECK(scene.ex->wr_id == 0);
  CHECK(ibv_next_poll(scene.ex) == ENOENT);
  ibv_end_poll(scene.ex);
  CHECK(scene.start() == ENOENT);
}

TEST_CASE("cq_ex: unknown attributes of the iterator are refused", "[softnic][cq_ex]") {
  CqExScene scene;
  scene.fill_queue(1);
  ibv_poll_cq_attr attr{};
  attr.comp_mask = 1;
  CHECK(ibv_start_poll(scene.ex, &attr) == EINVAL);
  CHECK(scene.start() == 0);  // the queue is not locked and no completion was consumed
  ibv_end_poll(scene.ex);
}

TEST_CASE("cq_ex: the opcodes of a sender's work", "[softnic][cq_ex]") {
  CqExScene scene;
  Buffer remote = scene.a.buffer(100);
  REQUIRE(post(scene.a.qp, RecvWork{}) == 0);
  REQUIRE(post(scene.qp.get(), write_work(scene.into.all(), remote.all(), 1)) == 0);
  REQUIRE(post(scene.qp.get(), read_work(scene.into.all(), remote.all(), 2)) == 0);
  REQUIRE(post(scene.qp.get(), SendWork{.opcode = IBV_WR_SEND, .wr_id = 3}) == 0);
  const ibv_wc_opcode expected[] = {IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ, IBV_WC_SEND};
  for (std::uint64_t i = 1; i <= 3; ++i) {
    scene.must_start();
    CHECK(scene.ex->wr_id == i);
    CHECK(scene.ex->status == IBV_WC_SUCCESS);
    CHECK(ibv_wc_read_opcode(scene.ex) == expected[i - 1]);
    if (i == 2) CHECK(ibv_wc_read_byte_len(scene.ex) == 100);
    ibv_end_poll(scene.ex);
  }
}

TEST_CASE("cq_ex: entries come in order, in batches of any length", "[softnic][cq_ex]") {
  CqExScene scene;
  scene.fill_queue(12);
  std::uint64_t next = 0;
  for (const int batch : {1, 5, 2, 4}) {
    REQUIRE(scene.start() == 0);
    CHECK(scene.ex->wr_id == next++);
    for (int i = 1; i < batch; ++i) {
      REQUIRE(ibv_next_poll(scene.ex) == 0);
      CHECK(scene.ex->wr_id == next++);
    }
    ibv_end_poll(scene.ex);
  }
  CHECK(scene.start() == ENOENT);
}

TEST_CASE("cq_ex: it can be mixed with plain polling", "[softnic][cq_ex]") {
  CqExScene scene;
  scene.fill_queue(9);
  for (std::uint64_t i = 0; i < 9; i += 3) {
    REQUIRE(scene.start() == 0);
    CHECK(scene.ex->wr_id == i);
    ibv_end_poll(scene.ex);
    must_complete(scene.cq(), i + 1);
    must_complete(scene.cq(), i + 2);
  }
  CHECK(is_empty(scene.cq()));
}

TEST_CASE("cq_ex: failures are entries too", "[softnic][cq_ex]") {
  CqExScene scene;
  REQUIRE(post(scene.qp.get(), RecvWork{.wr_id = 8}) == 0);
  SendWork work = write_work(scene.into.all(), scene.from.all(), 5);
  work.local[0].lkey += 0x100;
  REQUIRE(post(scene.qp.get(), work) == 0);
  scene.must_start();
  CHECK(scene.ex->wr_id == 5);
  CHECK(scene.ex->status == IBV_WC_LOC_PROT_ERR);
  CHECK(ibv_wc_read_qp_num(scene.ex) == scene.qp->qp_num);
  (void)ibv_wc_read_vendor_err(scene.ex);
  ibv_end_poll(scene.ex);
  scene.must_start();
  CHECK(scene.ex->wr_id == 8);
  CHECK(scene.ex->status == IBV_WC_WR_FLUSH_ERR);
  ibv_end_poll(scene.ex);
}

TEST_CASE("cq_ex: a started iteration keeps other threads out", "[softnic][cq_ex]") {
  CqExScene scene;
  scene.fill_queue(3);
  REQUIRE(scene.start() == 0);
  std::atomic<bool> begun{false};
  std::atomic<bool> ended{false};
  std::atomic<bool> too_early{false};
  ibv_wc wc{};
  int got = 0;
  std::thread other([&] {
    begun = true;
    got = ibv_poll_cq(scene.cq(), 1, &wc);
    too_early = !ended;
  });
  wait_until([&] { return begun.load(); }, "the thread");
  pass_time();
  CHECK(ibv_next_poll(scene.ex) == 0);
  CHECK(scene.ex->wr_id == 1);
  ended = true;
  ibv_end_poll(scene.ex);
  other.join();
  CHECK_FALSE(too_early);
  CHECK(got == 1);
  CHECK(wc.wr_id == 2);
}

TEST_CASE("cq_ex: threads that iterate share the entries", "[softnic][cq_ex]") {
  constexpr std::uint64_t kEntries = 40;
  CqExScene scene;
  scene.fill_queue(kEntries);
  std::vector<std::atomic<int>> seen(kEntries);
  std::vector<PeerBody> bodies(3, [&](Peer&) {
    ibv_poll_cq_attr attr{};
    while (ibv_start_poll(scene.ex, &attr) == 0) {
      do {
        seen.at(scene.ex->wr_id).fetch_add(1);
      } while (ibv_next_poll(scene.ex) == 0);
      ibv_end_poll(scene.ex);
    }
  });
  run_peers(PeerMode::kThreads, bodies);
  for (const auto& count : seen) CHECK(count == 1);
}

TEST_CASE("cq_ex: between start and end a program may post and poll elsewhere",
          "[softnic][cq_ex]") {
  if (!kProcessesWork) return;
  const TestFabric outer;  // held by this process, because the child may hang and be killed
  const bool breaks = GENERATE(false, true);
  run_peers(PeerMode::kProcesses, {[breaks](Peer&) {
              CqExScene scene;
              scene.fill_queue(2);
              BL_MUST_OK(post(scene.qp.get(), RecvWork{.wr_id = 2}));
              BL_MUST(scene.start() == 0);
              Region wrong = scene.into.all();
              if (breaks) wrong.rkey += 0x100;
              BL_MUST_OK(post(scene.a.qp, write_work(scene.from.all(), wrong, 9)));
              const ibv_wc wc = poll_one(scene.a.send_cq.get());
              BL_MUST(wc.status == (breaks ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS));
              for (int i = 0; i < 100; ++i) BL_MUST(is_empty(scene.a.send_cq.get()));
              BL_MUST_OK(post(scene.qp.get(), RecvWork{.wr_id = 3}));
              BL_MUST(ibv_next_poll(scene.ex) == 0);
              BL_MUST(scene.ex->wr_id == 1 && scene.ex->status == IBV_WC_SUCCESS);
              ibv_end_poll(scene.ex);
              if (!breaks) return;
              for (std::uint64_t i = 2; i < 4; ++i) {
                scene.must_start();
                BL_MUST(scene.ex->wr_id == i && scene.ex->status == IBV_WC_WR_FLUSH_ERR);
                ibv_end_poll(scene.ex);
              }
            }},
            kPatience);
}

TEST_CASE("cq_ex: between start and end a program may move its queue pair to ERR",
          "[softnic][cq_ex]") {
  if (!kProcessesWork) return;
  const TestFabric outer;
  run_peers(PeerMode::kProcesses, {[](Peer&) {
              CqExScene scene;
              scene.fill_queue(2);
              BL_MUST_OK(post(scene.qp.get(), RecvWork{.wr_id = 2}));
              BL_MUST(scene.start() == 0);
              BL_MUST_OK(modify_state(scene.qp.get(), IBV_QPS_ERR));
              BL_MUST(ibv_next_poll(scene.ex) == 0);
              BL_MUST(scene.ex->wr_id == 1 && scene.ex->status == IBV_WC_SUCCESS);
              BL_MUST(ibv_next_poll(scene.ex) == 0);
              BL_MUST(scene.ex->wr_id == 2 && scene.ex->status == IBV_WC_WR_FLUSH_ERR);
              BL_MUST(ibv_next_poll(scene.ex) == ENOENT);
              ibv_end_poll(scene.ex);
            }},
            kPatience);
}

TEST_CASE("cq_ex: queue entries are free after the iterator has passed them", "[softnic][cq_ex]") {
  CqExScene scene;
  for (int round = 0; round < 20; ++round) {
    scene.fill_queue(64);  // the depth of the receive queue
    REQUIRE(scene.start() == 0);
    for (int i = 1; i < 64; ++i) REQUIRE(ibv_next_poll(scene.ex) == 0);
    CHECK(ibv_next_poll(scene.ex) == ENOENT);
    ibv_end_poll(scene.ex);
  }
}

TEST_CASE("cq_ex: an overrun is an error of the iterator", "[softnic][cq_ex]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  ibv_cq_init_attr_ex attr = cq_attr();
  attr.cqe = 4;
  ibv_cq_ex* ex = ibv_create_cq_ex(nic.context.get(), &attr);
  REQUIRE(ex != nullptr);
  const CqPtr cq(ibv_cq_ex_to_cq(ex));
  ibv_qp_init_attr init = init_attr(nic);
  init.send_cq = cq.get();
  const QpPtr qp(ibv_create_qp(nic.pd.get(), &init));
  REQUIRE(qp != nullptr);
  connect(qp.get(), address_of(qp.get()));
  for (int i = 0; i <= cq->cqe; ++i) (void)post(qp.get(), nothing_work());
  CHECK(wait_for_event(nic.context.get(), IBV_EVENT_CQ_ERR).element.cq == cq.get());
  ibv_poll_cq_attr none{};
  int rc = 0;
  for (int i = 0; i <= cq->cqe && rc == 0; ++i) {
    rc = ibv_start_poll(ex, &none);
    if (rc == 0) ibv_end_poll(ex);
  }
  CHECK(rc != 0);
  CHECK(rc != ENOENT);
}

TEST_CASE("cq_ex: a queue has the size, context and channel of a plain one", "[softnic][cq_ex]") {
  CqExScene scene;
  const ChannelPtr channel = make_channel(scene.b.context.get());
  int tag = 0;
  ibv_cq_init_attr_ex attr = cq_attr(IBV_WC_STANDARD_FLAGS);
  attr.cqe = 100;
  attr.cq_context = &tag;
  attr.channel = channel.get();
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  ibv_cq_ex* ex = ibv_create_cq_ex(scene.b.context.get(), &attr);
  REQUIRE(ex != nullptr);
  const CqPtr cq(ibv_cq_ex_to_cq(ex));
  CHECK(cq->cqe >= 100);
  CHECK(cq->cq_context == &tag);
  CHECK(cq->channel == channel.get());
  CHECK(cq->context == scene.b.context.get());
  ibv_qp_init_attr init = init_attr(scene.b);
  init.send_cq = cq.get();
  const QpPtr qp(ibv_create_qp(scene.b.pd.get(), &init));
  REQUIRE(qp != nullptr);
  connect(qp.get(), address_of(qp.get()));
  REQUIRE(ibv_req_notify_cq(cq.get(), 0) == 0);
  REQUIRE(post(qp.get(), nothing_work(4)) == 0);
  REQUIRE(next_cq_event(channel.get()) == cq.get());
  ibv_ack_cq_events(cq.get(), 1);
  ibv_poll_cq_attr none{};
  REQUIRE(ibv_start_poll(ex, &none) == 0);
  CHECK(ex->wr_id == 4);
  ibv_end_poll(ex);
}

TEST_CASE("cq_ex: unsupported fields are refused", "[softnic][cq_ex]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  ibv_cq_init_attr_ex attr = cq_attr();
  SECTION("timestamps") { attr.wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP; }
  SECTION("wall-clock timestamps") {
    attr.wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  }
  SECTION("VLANs") { attr.wc_flags |= IBV_WC_EX_WITH_CVLAN; }
  SECTION("flow tags") { attr.wc_flags |= IBV_WC_EX_WITH_FLOW_TAG; }
  SECTION("tag matching") { attr.wc_flags |= IBV_WC_EX_WITH_TM_INFO; }
  SECTION("fields of the future") { attr.wc_flags |= std::uint64_t{1} << 40; }
  SECTION("attributes of the future") { attr.comp_mask = 1u << 20; }
  SECTION("a parent domain") {
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
    attr.parent_domain = nic.pd.get();
  }
  SECTION("flags of the future") {
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    attr.flags = 1u << 20;
  }
  SECTION("no entries") { attr.cqe = 0; }
  SECTION("a vector that is not there") {
    attr.comp_vector = static_cast<std::uint32_t>(nic.context->num_comp_vectors);
  }
  errno = 0;
  CHECK(ibv_create_cq_ex(nic.context.get(), &attr) == nullptr);
  CHECK((errno == EOPNOTSUPP || errno == EINVAL));
}
