// SPDX-License-Identifier: Apache-2.0
//
// Queue entries, and the order of completions, receives and data.
#include <algorithm>
#include <map>
#include <random>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

TEST_CASE("order: send queue entries are free when a later completion is polled",
          "[softnic][order]") {
  Pair pair({.shape = {.send_depth = 8}});
  Buffer from = pair.a.buffer(8);
  Buffer into = pair.b.buffer(8);
  const std::uint32_t depth = pair.a.cap.max_send_wr;
  for (std::uint32_t i = 0; i + 1 < depth; ++i) {
    REQUIRE(post(pair.a.qp, unsignaled(nothing_work(i))) == 0);
  }
  from.data()[0] = 1;
  REQUIRE(post(pair.a.qp, write_work(from.all(), into.all(), 1000)) == 0);
  CHECK(post(pair.a.qp, nothing_work()) == ENOMEM);
  wait_until([&] { return into.peek(0) == 1; }, "the last write");
  CHECK(post(pair.a.qp, nothing_work()) == ENOMEM);  // done, but not polled
  must_complete(pair.a.send_cq.get(), 1000);
  for (std::uint32_t i = 0; i < depth; ++i) REQUIRE(post(pair.a.qp, nothing_work(i)) == 0);
  for (std::uint32_t i = 0; i < depth; ++i) must_complete(pair.a.send_cq.get(), i);
}

TEST_CASE("order: a list longer than the queue stops where it is full", "[softnic][order]") {
  Pair pair({.shape = {.send_depth = 8, .recv_depth = 8}});
  std::vector<SendWork> sends(pair.a.cap.max_send_wr + 3, nothing_work());
  std::size_t accepted = 0;
  CHECK(post_list(pair.a.qp, sends, &accepted) == ENOMEM);
  CHECK(accepted == pair.a.cap.max_send_wr);
  std::vector<RecvWork> recvs(pair.b.cap.max_recv_wr + 3);
  CHECK(post_list(pair.b.qp, recvs, &accepted) == ENOMEM);
  CHECK(accepted == pair.b.cap.max_recv_wr);
  poll_many(pair.a.send_cq.get(), pair.a.cap.max_send_wr);
}

TEST_CASE("order: a receive queue entry is free when its completion is polled",
          "[softnic][order]") {
  Pair pair({.shape = {.recv_depth = 4}});
  const std::uint32_t depth = pair.b.cap.max_recv_wr;
  for (std::uint32_t i = 0; i < depth; ++i) REQUIRE(post(pair.b.qp, RecvWork{.wr_id = i}) == 0);
  CHECK(post(pair.b.qp, RecvWork{}) == ENOMEM);
  for (std::uint32_t i = 0; i < 3 * depth; ++i) {
    REQUIRE(post(pair.a.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = i}) == 0);
    must_complete(pair.b.recv_cq.get(), i);
    must_complete(pair.a.send_cq.get(), i);
    REQUIRE(post(pair.b.qp, RecvWork{.wr_id = depth + i}) == 0);
  }
}

TEST_CASE("order: completions come in the order of posting, whatever the work",
          "[softnic][order]") {
  const std::uint32_t seed = GENERATE(1u, 2u, 3u);
  INFO("seed " << seed);
  constexpr std::size_t kCount = 200;
  constexpr std::size_t kBig = 1u << 20;
  Pair pair({.shape = {.send_depth = kCount, .recv_depth = kCount, .cqe = 2 * kCount}});
  Buffer here = pair.a.buffer(kBig);
  Buffer there = pair.b.buffer(kBig);
  Buffer sink = pair.b.buffer(kBig);
  here.fill(1);
  there.fill(1);
  for (std::uint64_t i = 0; i < kCount; ++i)
    REQUIRE(post(pair.b.qp, recv_work(sink.all(), i)) == 0);

  std::mt19937 random(seed);
  std::vector<std::size_t> received_sizes;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const std::size_t size = random() % 20 == 0 ? kBig : random() % 5000;
    const Region local = here.part(0, size);
    const Region remote = there.part(0, size);
    SendWork work;
    switch (random() % 5) {
      case 0: work = write_work(local, remote, i); break;
      case 1: work = read_work(local, remote, i); break;
      case 2: work = send_work(local, i); break;
      case 3: work = send_imm_work(local, 1, i); break;
      default: work = write_imm_work(local, remote, 1, i); break;
    }
    if (work.opcode != IBV_WR_RDMA_WRITE && work.opcode != IBV_WR_RDMA_READ) {
      received_sizes.push_back(size);
    }
    REQUIRE(post(pair.a.qp, work) == 0);
  }
  for (std::uint64_t i = 0; i < kCount; ++i) must_complete(pair.a.send_cq.get(), i);
  const auto received = poll_many(pair.b.recv_cq.get(), received_sizes.size());
  for (std::size_t i = 0; i < received.size(); ++i) {
    CHECK(received[i].wr_id == i);
    CHECK(received[i].byte_len == received_sizes[i]);
  }
  CHECK(is_empty(pair.b.recv_cq.get()));
  CHECK(here.has(1));
  CHECK(there.has(1));
}

TEST_CASE("order: a SEND arrives after an earlier WRITE", "[softnic][order]") {
  constexpr std::size_t kBig = 2u << 20;
  Pair pair;
  Buffer from = pair.a.buffer(kBig);
  Buffer into = pair.b.buffer(kBig);
  for (std::uint32_t round = 0; round < 20; ++round) {
    from.fill(round);
    REQUIRE(post(pair.b.qp, RecvWork{.wr_id = round}) == 0);
    REQUIRE(post_list(pair.a.qp, {unsignaled(write_work(from.all(), into.all())),
                                  SendWork{.opcode = IBV_WR_SEND, .wr_id = round}}) == 0);
    must_complete(pair.b.recv_cq.get(), round);
    REQUIRE(into.has(round));
    must_complete(pair.a.send_cq.get(), round);
  }
}

TEST_CASE("order: many queue pairs share one completion queue", "[softnic][order]") {
  constexpr std::size_t kQps = 16;
  constexpr std::uint64_t kEach = 20;
  const TestFabric fabric;
  const Nic a("softnic0", 1024);
  const Nic b("softnic1", 1024);
  std::vector<QpPtr> left;
  std::vector<QpPtr> right;
  std::map<std::uint32_t, std::uint64_t> next;  // by queue pair number: the wr_id to come
  for (std::size_t i = 0; i < kQps; ++i) {
    left.push_back(make_qp(a));
    right.push_back(make_qp(b));
    connect_both(left.back().get(), right.back().get());
    next[left.back()->qp_num] = 0;
    next[right.back()->qp_num] = 0;
  }
  REQUIRE(next.size() == 2 * kQps);
  for (std::uint64_t n = 0; n < kEach; ++n) {
    for (std::size_t i = 0; i < kQps; ++i) {
      REQUIRE(post(right[i].get(), RecvWork{.wr_id = n}) == 0);
      REQUIRE(post(left[i].get(), SendWork{.opcode = IBV_WR_SEND, .wr_id = n}) == 0);
    }
  }
  for (ibv_cq* cq : {a.send_cq.get(), b.recv_cq.get()}) {
    for (const ibv_wc& wc : poll_many(cq, kQps * kEach)) {
      CHECK(wc.status == IBV_WC_SUCCESS);
      CHECK(wc.wr_id == next.at(wc.qp_num)++);
    }
    CHECK(is_empty(cq));
  }
}

TEST_CASE("order: one completion queue may serve both directions", "[softnic][order]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  ibv_qp_init_attr init = init_attr(nic);
  init.recv_cq = init.send_cq;
  const QpPtr qp(ibv_create_qp(nic.pd.get(), &init));
  REQUIRE(qp != nullptr);
  connect(qp.get(), address_of(qp.get()));  // to itself
  Buffer from(nic.pd.get(), 300);
  Buffer into(nic.pd.get(), 300);
  from.fill(8);
  REQUIRE(post(qp.get(), recv_work(into.all(), 1)) == 0);
  REQUIRE(post(qp.get(), send_work(from.all(), 2)) == 0);
  auto both = poll_many(nic.send_cq.get(), 2);
  std::sort(both.begin(), both.end(),
            [](const auto& l, const auto& r) { return l.wr_id < r.wr_id; });
  CHECK(both[0].opcode == IBV_WC_RECV);
  CHECK(both[0].wr_id == 1);
  CHECK(both[1].opcode == IBV_WC_SEND);
  CHECK(both[1].wr_id == 2);
  CHECK(into.has(8));
  REQUIRE(post(qp.get(), read_work(into.part(0, 100), from.part(200, 100), 3)) == 0);
  must_complete(nic.send_cq.get(), 3);
  CHECK(has_pattern(into.bytes(0, 100), 8, 200));
}
