// SPDX-License-Identifier: Apache-2.0
//
// Which ports reach each other: link layers, GIDs and networks. Connections of which one end was
// created anew.
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr Wire kQuick{.timeout = 19, .retry_cnt = 1};  // 43 ms on the fast clock
constexpr double kClock = 0.01;

// Two devices on one host, of these kinds and networks.
softnic::FabricSpec two_devices(softnic::LinkLayer first, softnic::LinkLayer second,
                                const std::string& first_network = "",
                                const std::string& second_network = "") {
  softnic::FabricSpec spec;
  spec.clock_scale = kClock;
  softnic::HostSpec host;
  host.name = "h0";
  for (int i = 0; i < 2; ++i) {
    softnic::DeviceSpec device;
    device.name = "nic" + std::to_string(i);
    device.link_layer = i == 0 ? first : second;
    softnic::PortSpec port;
    port.network = i == 0 ? first_network : second_network;
    device.ports.push_back(port);
    host.devices.push_back(device);
  }
  spec.hosts.push_back(host);
  return spec;
}

// Whether a WRITE of A arrives at B. If not, it must fail for lack of an answer.
bool can_reach(Endpoint& a, Endpoint& b) {
  Buffer from = a.buffer(64);
  Buffer into = b.buffer(64);
  from.fill(1);
  BL_MUST_OK(post(a.qp, write_work(from.all(), into.all())));
  const ibv_wc_status status = poll_one(a.send_cq.get()).status;
  if (status == IBV_WC_SUCCESS) {
    CHECK(into.has(1));
    return true;
  }
  CHECK(status == IBV_WC_RETRY_EXC_ERR);
  CHECK(into.is_zero(0, 64));
  return false;
}

}  // namespace

TEST_CASE("connection: InfiniBand uses LIDs, and GIDs on request", "[softnic][connection]") {
  const bool global = GENERATE(false, true);
  const auto layer = softnic::LinkLayer::kInfiniBand;
  const TestFabric fabric(two_devices(layer, layer));
  Endpoint a("nic0");
  Endpoint b("nic1");
  const auto join = [&](Endpoint& self, const QpAddress& peer) {
    to_init(self.qp, kQuick);
    ibv_qp_attr attr = full_attr(self.qp, peer, kQuick);
    attr.qp_state = IBV_QPS_RTR;
    if (global) {
      attr.ah_attr.is_global = 1;
      attr.ah_attr.grh.dgid = peer.gid;
      attr.ah_attr.grh.sgid_index = 0;
    }
    BL_MUST_OK(ibv_modify_qp(self.qp, &attr, kRtrMask));
    to_rts(self.qp, kQuick);
  };
  join(a, address_of(b.qp));
  join(b, address_of(a.qp));
  CHECK(can_reach(a, b));
  CHECK(can_reach(b, a));
}

TEST_CASE("connection: a wrong LID reaches no port", "[softnic][connection]") {
  const auto layer = softnic::LinkLayer::kInfiniBand;
  const TestFabric fabric(two_devices(layer, layer));
  Endpoint a("nic0");
  Endpoint b("nic1");
  QpAddress wrong = address_of(b.qp);
  wrong.lid = static_cast<std::uint16_t>(wrong.lid + 100);
  connect(a.qp, wrong, kQuick);
  connect(b.qp, address_of(a.qp), kQuick);
  CHECK(!can_reach(a, b));
}

TEST_CASE("connection: packets to a LID that has changed are lost", "[softnic][connection]") {
  const auto layer = softnic::LinkLayer::kInfiniBand;
  const TestFabric fabric(two_devices(layer, layer));
  Endpoint a("nic0");
  Endpoint b("nic1");
  connect_both(a.qp, b.qp, kQuick);
  CHECK(can_reach(a, b));
  fabric.command("h0/nic1", "lid=777");
  CHECK(!can_reach(a, b));
}

TEST_CASE("connection: RoCE works with every GID of a port", "[softnic][connection]") {
  const std::uint8_t index =
      GENERATE(std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{3});
  const TestFabric fabric(kClock);
  Endpoint a("softnic0");
  Endpoint b("softnic1");
  ibv_gid_entry entry{};
  if (ibv_query_gid_ex(a.context.get(), 1, index, &entry, 0) != 0) return;
  Wire wire = kQuick;
  wire.sgid_index = index;
  connect_both(a.qp, b.qp, wire);
  CHECK(can_reach(a, b));
}

TEST_CASE("connection: RoCE v1 and v2 do not interoperate", "[softnic][connection]") {
  const bool same = GENERATE(false, true);
  const auto layer = softnic::LinkLayer::kEthernet;
  softnic::FabricSpec spec = two_devices(layer, layer);
  // One GID each, so that no GID of the other type can match.
  for (std::uint8_t i = 0; i < 2; ++i) {
    softnic::GidSpec gid;
    gid.raw = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, i};
    gid.kind = same || i == 0 ? softnic::GidKind::kRoceV1 : softnic::GidKind::kRoceV2;
    spec.hosts[0].devices[i].ports[0].gids = {gid};
  }
  const TestFabric fabric(spec);
  Endpoint a("nic0");
  Endpoint b("nic1");
  Wire wire = kQuick;
  wire.sgid_index = 0;
  connect_both(a.qp, b.qp, wire);
  CHECK(can_reach(a, b) == same);
}

TEST_CASE("connection: ports of different networks do not reach each other",
          "[softnic][connection]") {
  const auto layer = GENERATE(softnic::LinkLayer::kEthernet, softnic::LinkLayer::kInfiniBand);
  const bool together = GENERATE(false, true);
  const TestFabric fabric(two_devices(layer, layer, "blue", together ? "blue" : "red"));
  Endpoint a("nic0");
  Endpoint b("nic1");
  connect_both(a.qp, b.qp, kQuick);
  CHECK(can_reach(a, b) == together);
}

TEST_CASE("connection: Ethernet and InfiniBand do not interoperate", "[softnic][connection]") {
  const TestFabric fabric(
      two_devices(softnic::LinkLayer::kEthernet, softnic::LinkLayer::kInfiniBand));
  Endpoint a("nic0");
  Endpoint b("nic1");
  connect(a.qp, address_of(b.qp), kQuick);
  connect(b.qp, address_of(a.qp), kQuick);
  CHECK(!can_reach(a, b));
}

TEST_CASE("connection: the old peer does not reach a queue pair that was created anew",
          "[softnic][connection]") {
  Pair pair({.clock_scale = kClock, .wire = kQuick});
  REQUIRE(can_reach(pair.a, pair.b));  // A's sequence number has advanced
  const QpAddress a_address = address_of(pair.a.qp, kQuick);
  REQUIRE(modify_state(pair.b.qp, IBV_QPS_RESET) == 0);
  connect(pair.b.qp, a_address, kQuick);  // B expects the number with which A started
  CHECK(!can_reach(pair.a, pair.b));
  connect_both(pair.a.qp, pair.b.qp, kQuick);
  CHECK(can_reach(pair.a, pair.b));
}

TEST_CASE("connection: a new sender is not mistaken for the old one", "[softnic][connection]") {
  Pair pair({.clock_scale = kClock, .wire = kQuick});
  REQUIRE(can_reach(pair.a, pair.b));
  // A restarts with the same numbers, which B has received before. On a real wire they look like
  // repetitions. No byte may arrive.
  connect(pair.a.qp, address_of(pair.b.qp, kQuick), kQuick);
  Buffer from = pair.a.buffer(64);
  Buffer into = pair.b.buffer(64);
  from.fill(1);
  REQUIRE(post(pair.a.qp, write_work(from.all(), into.all())) == 0);
  poll_one(pair.a.send_cq.get());
  CHECK(into.is_zero(0, 64));
}

TEST_CASE("connection: a new queue pair does not inherit a dead one's number",
          "[softnic][connection]") {
  Pair pair({.clock_scale = kClock, .wire = kQuick});
  const std::uint32_t old_number = pair.b.qp->qp_num;
  pair.b.owned_qp.reset();
  for (int i = 0; i < 50; ++i) {
    const QpPtr fresh = make_qp(pair.b);
    CHECK(fresh->qp_num != old_number);
    connect(fresh.get(), address_of(pair.a.qp, kQuick), kQuick);
  }
  const QpPtr heir = make_qp(pair.b);
  connect(heir.get(), address_of(pair.a.qp, kQuick), kQuick);
  REQUIRE(post(pair.a.qp, nothing_work(1)) == 0);
  CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_RETRY_EXC_ERR);
}
