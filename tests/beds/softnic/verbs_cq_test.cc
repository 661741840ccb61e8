// SPDX-License-Identifier: Apache-2.0
//
// Completion queues: batches, wrap-around, overrun, and the destruction of queue pairs.
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

// Two connected NICs where A's send queue completes into a queue of its own, of a chosen size.
struct SmallCq {
  explicit SmallCq(int cqe) : cq(make_cq(pair.a.context.get(), cqe)) {
    ibv_qp_init_attr init = init_attr(pair.a, {.send_depth = 512});
    init.send_cq = cq.get();
    qp.reset(ibv_create_qp(pair.a.pd.get(), &init));
    BL_MUST(qp != nullptr);
    connect_both(qp.get(), pair.b.qp);
  }

  Pair pair;
  CqPtr cq;
  QpPtr qp;
};

}  // namespace

TEST_CASE("cq: a queue has its attributes", "[softnic][cq]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  int cookie = 0;
  const CqPtr cq(ibv_create_cq(context.get(), 100, &cookie, nullptr, 0));
  REQUIRE(cq != nullptr);
  CHECK(cq->context == context.get());
  CHECK(cq->cq_context == &cookie);
  CHECK(cq->cqe >= 100);
  CHECK(cq->channel == nullptr);
  CHECK(is_empty(cq.get()));
}

TEST_CASE("cq: polling returns at most the requested number, in order", "[softnic][cq]") {
  Pair pair;
  constexpr std::uint64_t kCount = 20;
  for (std::uint64_t i = 0; i < kCount; ++i) REQUIRE(post(pair.a.qp, nothing_work(i)) == 0);
  ibv_cq* cq = pair.a.send_cq.get();
  CHECK(ibv_poll_cq(cq, 0, nullptr) == 0);
  std::uint64_t next = 0;
  for (const std::size_t batch : {std::size_t{1}, std::size_t{3}, std::size_t{7}, std::size_t{9}}) {
    for (const ibv_wc& wc : poll_many(cq, batch)) CHECK(wc.wr_id == next++);
  }
  CHECK(next == kCount);
  // Asking for more than there is returns what there is and writes no further.
  REQUIRE(post(pair.a.qp, nothing_work(77)) == 0);
  ibv_wc wcs[4];
  for (ibv_wc& wc : wcs) wc.wr_id = 12345;
  wait_until([&] { return ibv_poll_cq(cq, 4, wcs) == 1; }, "one completion");
  CHECK(wcs[0].wr_id == 77);
  CHECK(wcs[1].wr_id == 12345);
}

TEST_CASE("cq: the ring wraps around many times without a loss", "[softnic][cq]") {
  SmallCq small(7);
  const auto capacity = static_cast<std::uint64_t>(small.cq->cqe);
  std::uint64_t posted = 0;
  std::uint64_t polled = 0;
  for (std::uint64_t round = 0; round < 300; ++round) {
    const std::uint64_t batch = 1 + round % capacity;
    for (std::uint64_t i = 0; i < batch; ++i) {
      REQUIRE(post(small.qp.get(), nothing_work(posted++)) == 0);
    }
    for (const ibv_wc& wc : poll_many(small.cq.get(), batch)) {
      REQUIRE(wc.status == IBV_WC_SUCCESS);
      REQUIRE(wc.wr_id == polled++);
    }
  }
  CHECK(!has_event(small.pair.a.context.get()));
}

TEST_CASE("cq: an overrun causes an event and moves the queue pairs to ERR", "[softnic][cq]") {
  SmallCq small(7);
  const auto capacity = static_cast<std::uint64_t>(small.cq->cqe);
  for (std::uint64_t i = 0; i < capacity + 1; ++i) {
    // The queue pair may move to ERR meanwhile, which is not a failure of the post.
    REQUIRE(post(small.qp.get(), nothing_work(i)) == 0);
  }
  const ibv_async_event event = wait_for_event(small.pair.a.context.get(), IBV_EVENT_CQ_ERR);
  CHECK(event.element.cq == small.cq.get());
  wait_for_state(small.qp.get(), IBV_QPS_ERR);
  // Another queue pair on the same device is not affected.
  CHECK(state_of(small.pair.a.qp) != IBV_QPS_ERR);
}

TEST_CASE("cq: a peer can overrun a receive queue", "[softnic][cq]") {
  const TestFabric fabric;
  Endpoint a("softnic0");
  Endpoint b("softnic1", {.recv_depth = 512, .cqe = 7});
  connect_both(a.qp, b.qp);
  const auto capacity = static_cast<std::uint64_t>(b.recv_cq->cqe);
  REQUIRE(capacity < 256);
  for (std::uint64_t i = 0; i <= capacity; ++i) REQUIRE(post(b.qp, RecvWork{.wr_id = i}) == 0);
  for (std::uint64_t i = 0; i <= capacity; ++i) {
    REQUIRE(post(a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = i}) == 0);
    poll_one(a.send_cq.get());
  }
  const ibv_async_event event = wait_for_event(b.context.get(), IBV_EVENT_CQ_ERR);
  CHECK(event.element.cq == b.recv_cq.get());
  wait_for_state(b.qp, IBV_QPS_ERR);
}

TEST_CASE("cq: completions of a destroyed queue pair are removed", "[softnic][cq]") {
  const TestFabric fabric;
  const Nic a("softnic0");
  const Nic b("softnic1");
  QpPtr doomed = make_qp(a);
  const QpPtr kept = make_qp(a);
  const QpPtr doomed_peer = make_qp(b);
  const QpPtr kept_peer = make_qp(b);
  connect_both(doomed.get(), doomed_peer.get());
  connect_both(kept.get(), kept_peer.get());
  // Interleaved, so that removal has to leave the others' order alone.
  for (std::uint64_t i = 0; i < 10; ++i) {
    REQUIRE(post(doomed.get(), nothing_work(1000 + i)) == 0);
    REQUIRE(post(kept.get(), nothing_work(i)) == 0);
  }
  std::vector<std::uint64_t> kept_ids;
  std::size_t doomed_seen = 0;
  while (kept_ids.empty() || doomed_seen == 0) {
    const std::uint64_t id = poll_one(a.send_cq.get()).wr_id;
    if (id < 1000) {
      kept_ids.push_back(id);
    } else {
      ++doomed_seen;
    }
  }
  doomed.reset();
  while (kept_ids.size() < 10) {
    const ibv_wc wc = poll_one(a.send_cq.get());
    CHECK(wc.qp_num == kept->qp_num);
    kept_ids.push_back(wc.wr_id);
  }
  for (std::uint64_t i = 0; i < 10; ++i) CHECK(kept_ids[i] == i);
  CHECK(is_empty(a.send_cq.get()));
}

TEST_CASE("cq: a destroyed queue pair makes room in its completion queue", "[softnic][cq]") {
  SmallCq small(7);
  const auto capacity = static_cast<std::uint64_t>(small.cq->cqe);
  for (std::uint64_t round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < capacity; ++i)
      REQUIRE(post(small.qp.get(), nothing_work(i)) == 0);
    ibv_qp_init_attr init = init_attr(small.pair.a, {.send_depth = 512});
    init.send_cq = small.cq.get();
    small.qp.reset();
    small.qp.reset(ibv_create_qp(small.pair.a.pd.get(), &init));
    connect_both(small.qp.get(), small.pair.b.qp);
  }
  for (std::uint64_t i = 0; i < capacity; ++i) REQUIRE(post(small.qp.get(), nothing_work(i)) == 0);
  for (std::uint64_t i = 0; i < capacity; ++i) must_complete(small.cq.get(), i);
  CHECK(!has_event(small.pair.a.context.get()));
}

TEST_CASE("cq: flushed work can overrun a queue too", "[softnic][cq]") {
  const TestFabric fabric;
  Endpoint end("softnic0", {.recv_depth = 512, .cqe = 7});
  const auto capacity = static_cast<std::uint64_t>(end.recv_cq->cqe);
  to_init(end.qp);
  for (std::uint64_t i = 0; i < capacity + 5; ++i) REQUIRE(post(end.qp, RecvWork{.wr_id = i}) == 0);
  REQUIRE(modify_state(end.qp, IBV_QPS_ERR) == 0);
  const ibv_async_event event = wait_for_event(end.context.get(), IBV_EVENT_CQ_ERR);
  CHECK(event.element.cq == end.recv_cq.get());
}
