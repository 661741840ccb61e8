// SPDX-License-Identifier: Apache-2.0
//
// Queue pairs: attributes that depend on the fabric or on other objects, and the effect of state
// changes on posted work.
#include <cerrno>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

TEST_CASE("qp: an MTU above the port's is refused", "[softnic][qp]") {
  softnic::FabricSpec spec = softnic::default_fabric();
  for (softnic::HostSpec& host : spec.hosts) {
    for (softnic::DeviceSpec& device : host.devices) device.ports[0].mtu = 1024;
  }
  const TestFabric fabric(spec);
  Endpoint end("softnic0");
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(end.context.get(), 1, &port) == 0);
  REQUIRE(port.active_mtu == IBV_MTU_1024);
  to_init(end.qp);
  ibv_qp_attr attr = full_attr(end.qp, address_of(end.qp));
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_2048;
  CHECK(ibv_modify_qp(end.qp, &attr, kRtrMask) == EINVAL);
  attr.path_mtu = IBV_MTU_1024;
  CHECK(ibv_modify_qp(end.qp, &attr, kRtrMask) == 0);
}

TEST_CASE("qp: a queue of depth zero accepts no work", "[softnic][qp]") {
  const TestFabric fabric(0.01);
  Endpoint end("softnic0", {.send_depth = 0, .recv_depth = 0, .max_sge = 0, .max_inline = 0});
  Endpoint peer("softnic1", {.max_sge = 0, .max_inline = 0});
  connect_both(end.qp, peer.qp, {.rnr_retry = 0});
  if (end.cap.max_send_wr == 0) CHECK(post(end.qp, nothing_work()) == ENOMEM);
  if (end.cap.max_recv_wr == 0) CHECK(post(end.qp, RecvWork{}) == ENOMEM);
  // Messages without bytes still work, inline or not, but there is no receive for them.
  SendWork work = nothing_work(1);
  work.flags |= IBV_SEND_INLINE;
  REQUIRE(post(peer.qp, work) == 0);
  must_complete(peer.send_cq.get(), 1);
  if (end.cap.max_recv_wr != 0) return;
  REQUIRE(post(peer.qp, SendWork{.opcode = IBV_WR_SEND}) == 0);
  CHECK(poll_one(peer.send_cq.get()).status == IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_CASE("qp: queues of another device cannot serve a queue pair", "[softnic][qp]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  const Nic other("softnic1");
  ibv_qp_init_attr init = init_attr(nic);
  if (GENERATE(false, true)) {
    init.send_cq = other.send_cq.get();
  } else {
    init.recv_cq = other.recv_cq.get();
  }
  errno = 0;
  CHECK(QpPtr(ibv_create_qp(nic.pd.get(), &init)) == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE("qp: a created queue pair has its user pointer", "[softnic][qp]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  ibv_qp_init_attr init = init_attr(nic);
  int cookie = 0;
  init.qp_context = &cookie;
  const QpPtr qp(ibv_create_qp(nic.pd.get(), &init));
  REQUIRE(qp != nullptr);
  CHECK(qp->qp_context == &cookie);
  CHECK(qp->context == nic.context.get());
}

TEST_CASE("qp: in SQD sends wait until RTS and receives go on", "[softnic][qp]") {
  Pair pair;
  Buffer a_bytes = pair.a.buffer(64);
  Buffer b_bytes = pair.b.buffer(64);
  Buffer a_into = pair.a.buffer(64);
  REQUIRE(modify_state(pair.a.qp, IBV_QPS_SQD) == 0);
  a_bytes.fill(4);
  REQUIRE(post(pair.a.qp, write_work(a_bytes.all(), b_bytes.all(), 1)) == 0);

  // The other direction works. This round trip gives a send that was started wrongly time to
  // arrive.
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

TEST_CASE("qp: a queue pair reconnects again and again", "[softnic][qp]") {
  Pair pair;
  Buffer from = pair.a.buffer(512);
  Buffer into = pair.b.buffer(512);
  for (std::uint32_t round = 0; round < 50; ++round) {
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
