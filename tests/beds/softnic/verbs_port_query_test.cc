// SPDX-License-Identifier: Apache-2.0
//
// Port attributes: state, speed, link layer, LID and P_Keys.
#include <arpa/inet.h>

#include <cstring>
#include <set>
#include <string>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

softnic::FabricSpec one_device(softnic::DeviceSpec device) {
  softnic::FabricSpec spec;
  softnic::HostSpec host;
  host.name = "h0";
  host.devices.push_back(std::move(device));
  spec.hosts.push_back(std::move(host));
  return spec;
}

softnic::DeviceSpec device_spec(softnic::LinkLayer layer, std::uint32_t gbps = 100) {
  softnic::DeviceSpec device;
  device.name = "nic0";
  device.link_layer = layer;
  softnic::PortSpec port;
  port.gbps = gbps;
  device.ports.push_back(port);
  return device;
}

// Gbit/s as width times lane speed say it, by the InfiniBand encodings.
double encoded_gbps(const ibv_port_attr& port) {
  double lanes = 0;
  switch (port.active_width) {
    case 1: lanes = 1; break;
    case 2: lanes = 4; break;
    case 4: lanes = 8; break;
    case 8: lanes = 12; break;
    case 16: lanes = 2; break;
    default: return 0;
  }
  switch (port.active_speed) {
    case 1: return lanes * 2.5;
    case 2: return lanes * 5;
    case 4:
    case 8: return lanes * 10;
    case 16: return lanes * 14;
    case 32: return lanes * 25;
    case 64: return lanes * 50;
    case 128: return lanes * 100;
    default: return 0;
  }
}

}  // namespace

TEST_CASE("port_query: a fresh RoCE port is active, full speed, with its link layer",
          "[softnic][port_query]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(context.get(), 1, &port) == 0);
  CHECK(port.state == IBV_PORT_ACTIVE);
  CHECK(port.phys_state == 5);  // LinkUp
  CHECK(port.max_mtu == IBV_MTU_4096);
  CHECK(port.active_mtu == IBV_MTU_4096);
  CHECK(port.gid_tbl_len >= 4);
  CHECK(port.pkey_tbl_len >= 1);
  CHECK(port.lid == 0);
  CHECK(port.max_msg_sz == 1u << 30);
  CHECK(port.link_layer == IBV_LINK_LAYER_ETHERNET);
  CHECK(encoded_gbps(port) == 100);
}

TEST_CASE("port_query: the exported query fills the same fields as the extended one",
          "[softnic][port_query]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  ibv_port_attr fresh{};
  REQUIRE(ibv_query_port(context.get(), 1, &fresh) == 0);
  // Callers of the old symbol have a struct that ends before port_cap_flags2.
  ibv_port_attr old{};
  std::memset(&old, 0xEE, sizeof(old));
  REQUIRE((ibv_query_port)(context.get(), 1, reinterpret_cast<_compat_ibv_port_attr*>(&old)) == 0);
  CHECK(std::memcmp(&old, &fresh, offsetof(ibv_port_attr, port_cap_flags2)) == 0);
  CHECK(old.port_cap_flags2 == 0xEEEE);
}

TEST_CASE("port_query: width and speed encode the configured rate", "[softnic][port_query]") {
  const std::uint32_t gbps = GENERATE(10u, 25u, 40u, 50u, 100u, 200u, 400u, 800u);
  const auto layer = GENERATE(softnic::LinkLayer::kEthernet, softnic::LinkLayer::kInfiniBand);
  const TestFabric fabric(one_device(device_spec(layer, gbps)));
  const ContextPtr context = open_device("nic0");
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(context.get(), 1, &port) == 0);
  CHECK(encoded_gbps(port) == gbps);
}

TEST_CASE("port_query: the partition table has the default key at index 0",
          "[softnic][port_query]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  __be16 pkey = 0;
  REQUIRE(ibv_query_pkey(context.get(), 1, 0, &pkey) == 0);
  CHECK(pkey == 0xFFFF);
  CHECK(ibv_get_pkey_index(context.get(), 1, pkey) == 0);
  CHECK(ibv_get_pkey_index(context.get(), 1, htons(0x1234)) == -1);
  CHECK(ibv_query_pkey(context.get(), 1, 30000, &pkey) == -1);
  CHECK(ibv_query_pkey(context.get(), 2, 0, &pkey) == -1);  // no such port
}

TEST_CASE("port_query: both ports of a device can be queried", "[softnic][port_query]") {
  softnic::DeviceSpec device = device_spec(softnic::LinkLayer::kEthernet);
  device.ports.push_back(device.ports.front());
  device.ports[1].gbps = 25;
  const TestFabric fabric(one_device(device));
  const ContextPtr context = open_device("nic0");
  ibv_device_attr attr{};
  REQUIRE(ibv_query_device(context.get(), &attr) == 0);
  CHECK(attr.phys_port_cnt == 2);
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(context.get(), 2, &port) == 0);
  CHECK(encoded_gbps(port) == 25);
  CHECK(ibv_query_port(context.get(), 3, &port) == EINVAL);
  ibv_gid first{};
  ibv_gid second{};
  REQUIRE(ibv_query_gid(context.get(), 1, 3, &first) == 0);
  REQUIRE(ibv_query_gid(context.get(), 2, 3, &second) == 0);
  CHECK(std::memcmp(&first, &second, sizeof(first)) != 0);
}

TEST_CASE("port_query: an InfiniBand port has a LID and a GID of its own",
          "[softnic][port_query]") {
  softnic::FabricSpec spec = one_device(device_spec(softnic::LinkLayer::kInfiniBand));
  spec.hosts[0].devices.push_back(spec.hosts[0].devices[0]);
  spec.hosts[0].devices[1].name = "nic1";
  const TestFabric fabric(spec);
  std::set<std::uint16_t> lids;
  for (const char* name : {"nic0", "nic1"}) {
    const ContextPtr context = open_device(name);
    ibv_port_attr port{};
    REQUIRE(ibv_query_port(context.get(), 1, &port) == 0);
    CHECK(port.link_layer == IBV_LINK_LAYER_INFINIBAND);
    CHECK(port.lid != 0);
    CHECK(port.sm_lid != 0);
    lids.insert(port.lid);
    ibv_gid_entry entry{};
    REQUIRE(ibv_query_gid_ex(context.get(), 1, 0, &entry, 0) == 0);
    CHECK(entry.gid_type == IBV_GID_TYPE_IB);
    CHECK(entry.ndev_ifindex == 0);
    CHECK(entry.gid.raw[0] == 0xFE);
    CHECK(entry.gid.raw[1] == 0x80);
  }
  CHECK(lids.size() == 2);
}
