// SPDX-License-Identifier: Apache-2.0
//
// What queue pair attributes may be, that a refused call changes none of them, and that a query
// tells what was set.
#include <cstring>
#include <functional>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

struct BadValue {
  const char* what;
  ibv_qp_state to;  // the transition that carries it
  std::function<void(ibv_qp_attr&)> spoil;
};

const std::vector<BadValue>& bad_values() {
  static const std::vector<BadValue> values = {
      {"port 0", IBV_QPS_INIT, [](ibv_qp_attr& a) { a.port_num = 0; }},
      {"port 2 of 1", IBV_QPS_INIT, [](ibv_qp_attr& a) { a.port_num = 2; }},
      {"partition index", IBV_QPS_INIT, [](ibv_qp_attr& a) { a.pkey_index = 30000; }},
      {"MTU 0", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.path_mtu = ibv_mtu(0); }},
      {"MTU 6", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.path_mtu = ibv_mtu(6); }},
      {"no GRH on RoCE", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.ah_attr.is_global = 0; }},
      {"address port 0", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.ah_attr.port_num = 0; }},
      {"address port 2", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.ah_attr.port_num = 2; }},
      {"source GID behind the table", IBV_QPS_RTR,
       [](ibv_qp_attr& a) { a.ah_attr.grh.sgid_index = 255; }},
      {"RNR timer of 6 bits", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.min_rnr_timer = 32; }},
      {"too many inbound reads", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.max_dest_rd_atomic = 255; }},
      {"timeout of 6 bits", IBV_QPS_RTS, [](ibv_qp_attr& a) { a.timeout = 32; }},
      {"retries of 4 bits", IBV_QPS_RTS, [](ibv_qp_attr& a) { a.retry_cnt = 8; }},
      {"RNR retries of 4 bits", IBV_QPS_RTS, [](ibv_qp_attr& a) { a.rnr_retry = 8; }},
      {"too many outbound reads", IBV_QPS_RTS, [](ibv_qp_attr& a) { a.max_rd_atomic = 255; }},
  };
  return values;
}

int mask_of(ibv_qp_state to) {
  if (to == IBV_QPS_INIT) return kInitMask;
  return to == IBV_QPS_RTR ? kRtrMask : kRtsMask;
}

void bring_below(ibv_qp* qp, ibv_qp_state to) {
  BL_MUST_OK(modify_state(qp, IBV_QPS_RESET));
  if (to == IBV_QPS_INIT) return;
  to_init(qp);
  if (to == IBV_QPS_RTS) to_rtr(qp, address_of(qp));
}

ibv_qp_attr query(ibv_qp* qp, ibv_qp_init_attr* init = nullptr) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr unused{};
  BL_MUST_OK(ibv_query_qp(qp, &attr, (1 << 21) - 1, init != nullptr ? init : &unused));
  return attr;
}

}  // namespace

TEST_CASE("qp_attr: values out of range are EINVAL and leave the state", "[softnic][qp_attr]") {
  const TestFabric fabric;
  Endpoint end("softnic0");
  for (const BadValue& bad : bad_values()) {
    INFO(bad.what);
    bring_below(end.qp, bad.to);
    const ibv_qp_state before = state_of(end.qp);
    ibv_qp_attr attr = full_attr(end.qp, address_of(end.qp));
    attr.qp_state = bad.to;
    bad.spoil(attr);
    CHECK(ibv_modify_qp(end.qp, &attr, mask_of(bad.to)) == EINVAL);
    CHECK(state_of(end.qp) == before);
  }
}

TEST_CASE("qp_attr: an empty source GID is refused", "[softnic][qp_attr]") {
  const TestFabric fabric;
  Endpoint end("softnic0");
  to_init(end.qp);
  ibv_qp_attr attr = full_attr(end.qp, address_of(end.qp));
  attr.qp_state = IBV_QPS_RTR;
  attr.ah_attr.grh.sgid_index = 15;
  CHECK(ibv_modify_qp(end.qp, &attr, kRtrMask) == ENODATA);
  CHECK(state_of(end.qp) == IBV_QPS_INIT);
}

TEST_CASE("qp_attr: an MTU above the port's is refused", "[softnic][qp_attr]") {
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

TEST_CASE("qp_attr: a refused call modifies none of its attributes", "[softnic][qp_attr]") {
  const TestFabric fabric;
  Endpoint end("softnic0");
  connect(end.qp, address_of(end.qp));
  const ibv_qp_attr before = query(end.qp);
  ibv_qp_attr attr = full_attr(end.qp, address_of(end.qp));
  attr.qp_access_flags = 0;
  attr.min_rnr_timer = 3;
  attr.timeout = 1;  // has no place in RTS to RTS
  REQUIRE(ibv_modify_qp(end.qp, &attr,
                        IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_TIMEOUT) == EINVAL);
  const ibv_qp_attr after = query(end.qp);
  CHECK(after.qp_access_flags == before.qp_access_flags);
  CHECK(after.min_rnr_timer == before.min_rnr_timer);
  CHECK(after.timeout == before.timeout);
}

TEST_CASE("qp_attr: a query tells what was set", "[softnic][qp_attr]") {
  const TestFabric fabric;
  const QpShape shape{.send_depth = 33, .recv_depth = 17, .max_sge = 3, .max_inline = 40};
  Endpoint end("softnic0", shape);
  const QpAddress self = address_of(end.qp);
  const Wire wire{
      .mtu = IBV_MTU_1024, .timeout = 9, .retry_cnt = 5, .rnr_retry = 2, .min_rnr_timer = 21};
  connect(end.qp, self, wire);

  ibv_qp_init_attr init{};
  const ibv_qp_attr attr = query(end.qp, &init);
  CHECK(attr.qp_state == IBV_QPS_RTS);
  CHECK(attr.path_mtu == IBV_MTU_1024);
  CHECK(attr.rq_psn == self.psn);
  CHECK(attr.sq_psn == self.psn);
  CHECK(attr.dest_qp_num == self.qp_num);
  CHECK(attr.qp_access_flags == static_cast<unsigned>(wire.access));
  CHECK(attr.pkey_index == 0);
  CHECK(attr.port_num == 1);
  CHECK(attr.timeout == 9);
  CHECK(attr.retry_cnt == 5);
  CHECK(attr.rnr_retry == 2);
  CHECK(attr.min_rnr_timer == 21);
  CHECK(attr.max_rd_atomic == wire.max_rd_atomic);
  CHECK(attr.max_dest_rd_atomic == wire.max_dest_rd_atomic);
  CHECK(attr.ah_attr.is_global == 1);
  CHECK(attr.ah_attr.port_num == 1);
  CHECK(attr.ah_attr.grh.sgid_index == wire.sgid_index);
  CHECK(attr.ah_attr.grh.hop_limit == 64);
  CHECK(std::memcmp(&attr.ah_attr.grh.dgid, &self.gid, sizeof(self.gid)) == 0);

  CHECK(init.send_cq == end.send_cq.get());
  CHECK(init.recv_cq == end.recv_cq.get());
  CHECK(init.srq == nullptr);
  CHECK(init.qp_type == IBV_QPT_RC);
  CHECK(init.sq_sig_all == 0);
  CHECK(std::memcmp(&init.cap, &end.cap, sizeof(end.cap)) == 0);
  CHECK(std::memcmp(&attr.cap, &end.cap, sizeof(end.cap)) == 0);
  CHECK(end.cap.max_send_wr >= 33);
  CHECK(end.cap.max_recv_wr >= 17);
  CHECK(end.cap.max_send_sge >= 3);
  CHECK(end.cap.max_recv_sge >= 3);
  CHECK(end.cap.max_inline_data >= 40);
}

TEST_CASE("qp_attr: a created queue pair says who it is", "[softnic][qp_attr]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  ibv_qp_init_attr init = init_attr(nic);
  int cookie = 0;
  init.qp_context = &cookie;
  const QpPtr qp(ibv_create_qp(nic.pd.get(), &init));
  REQUIRE(qp != nullptr);
  CHECK(qp->context == nic.context.get());
  CHECK(qp->qp_context == &cookie);
  CHECK(qp->pd == nic.pd.get());
  CHECK(qp->send_cq == nic.send_cq.get());
  CHECK(qp->recv_cq == nic.recv_cq.get());
  CHECK(qp->srq == nullptr);
  CHECK(qp->state == IBV_QPS_RESET);
  CHECK(qp->qp_type == IBV_QPT_RC);
  CHECK(qp->qp_num > 1);  // 0 and 1 are the management QPs
  CHECK(qp->qp_num < 1u << 24);
  const QpPtr other = make_qp(nic);
  CHECK(other->qp_num != qp->qp_num);
}

TEST_CASE("qp_attr: a queue of depth zero takes nothing", "[softnic][qp_attr]") {
  const TestFabric fabric(0.01);
  Endpoint end("softnic0", {.send_depth = 0, .recv_depth = 0, .max_sge = 0, .max_inline = 0});
  Endpoint peer("softnic1", {.max_sge = 0, .max_inline = 0});
  connect_both(end.qp, peer.qp, {.rnr_retry = 0});
  if (end.cap.max_send_wr == 0) CHECK(post(end.qp, nothing_work()) == ENOMEM);
  if (end.cap.max_recv_wr == 0) CHECK(post(end.qp, RecvWork{}) == ENOMEM);
  // Messages of nothing still work, inline or not, and find no receive.
  SendWork work = nothing_work(1);
  work.flags |= IBV_SEND_INLINE;
  REQUIRE(post(peer.qp, work) == 0);
  must_complete(peer.send_cq.get(), 1);
  if (end.cap.max_recv_wr != 0) return;
  REQUIRE(post(peer.qp, SendWork{.opcode = IBV_WR_SEND}) == 0);
  CHECK(poll_one(peer.send_cq.get()).status == IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_CASE("qp_attr: queues of another device cannot serve a queue pair", "[softnic][qp_attr]") {
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
