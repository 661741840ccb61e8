// SPDX-License-Identifier: Apache-2.0
//
// The agreement of two ends on a path: LIDs, speeds and flow labels.
#include <set>
#include <utility>
#include <vector>

#include "plugin/connect/handshake/agreement.h"
#include "tests/support/catch.h"

using namespace beeline;

namespace {

constexpr std::uint16_t kOurLid = 7;
constexpr std::uint16_t kTheirLid = 9;

struct IbPort {
  Device device;
  PortFacts facts;
  QpOptions options;

  PortSide side() const { return {device, facts, options}; }
};

GidEntry gid_entry(std::uint16_t index, std::uint8_t flid, std::uint8_t subnet) {
  return {index, GidType::kIb, {0xfe, 0x80, 0, 0, 0, flid, 0, subnet, 0, 0, 0, 0, 0, 0, 0, 1}, ""};
}

IbPort ib_port(std::uint16_t lid, std::vector<GidEntry> gids) {
  IbPort port;
  port.device.ibdev = "mlx5_0";
  port.device.transport = Transport::kInfiniBand;
  port.facts.active_mtu = IBV_MTU_4096;
  port.facts.lid = lid;
  port.facts.pkeys = {0xffff};
  port.facts.gids = std::move(gids);
  port.options.ib_gid.flid_index = 1;
  return port;
}

// The LID to which each end sends.
struct Lids {
  std::uint16_t of_acceptor;
  std::uint16_t of_connector;
  bool operator==(const Lids&) const = default;
};

Lids lids_of(const IbPort& accepting, const IbPort& connecting) {
  wire::PathOffer offer = make_offer(connecting.side()).value();
  offer.qp.lid = connecting.facts.lid;
  Outcome<Agreement> agreed = agree(accepting.side(), offer, "h1", {});
  if (!agreed) FAIL(agreed.error().text);
  agreed->answer.qp.lid = accepting.facts.lid;
  const auto route = route_of(connecting.side(), agreed->answer);
  if (!route) FAIL(route.error().text);
  return {agreed->route.path.dlid, route->path.dlid};
}

}  // namespace

TEST_CASE("connect agree: packets for another subnet go to the router that the FLID names",
          "[unit][connect]") {
  const IbPort ours = ib_port(kOurLid, {gid_entry(0, 0, 1), gid_entry(1, 0x11, 1)});
  const IbPort near = ib_port(kTheirLid, {gid_entry(0, 0, 1), gid_entry(1, 0x12, 1)});
  const IbPort far = ib_port(kTheirLid, {gid_entry(0, 0, 2), gid_entry(1, 0x12, 2)});
  const IbPort far_without = ib_port(kTheirLid, {gid_entry(0, 0, 2)});
  CHECK(lids_of(ours, near) == Lids{kTheirLid, kOurLid});
  CHECK(lids_of(ours, far) == Lids{0x12, 0x11});
  CHECK(lids_of(ours, far_without) == Lids{kTheirLid, 0x11});
}

TEST_CASE("connect agree: a GID index for RoCE is not requested on InfiniBand", "[unit][connect]") {
  IbPort ours = ib_port(kOurLid, {gid_entry(0, 0, 1)});
  ours.options.gid.fixed_index = 3;
  CHECK(make_offer(ours.side())->settings.gid_index == -1);
  CHECK(lids_of(ours, ours) == Lids{kOurLid, kOurLid});
  ours.options.ib_gid.fixed_index = 3;
  CHECK_FALSE(agree(ours.side(), make_offer(ours.side()).value(), "h1", {}));
}

TEST_CASE("connect agree: the value of a partition key selects the index of each port",
          "[unit][connect]") {
  IbPort ours = ib_port(kOurLid, {gid_entry(0, 0, 1)});
  IbPort theirs = ib_port(kTheirLid, {gid_entry(0, 0, 1)});
  ours.facts.pkeys = {0xffff, 0x8001};
  theirs.facts.pkeys = {0xffff, 0x8002, 0x0001};
  const auto indexes = [&] {
    const auto agreed = agree(ours.side(), make_offer(theirs.side()).value(), "h1", {});
    if (!agreed) FAIL(agreed.error().text);
    const auto route = route_of(theirs.side(), agreed->answer);
    if (!route) FAIL(route.error().text);
    return std::pair<int, int>(agreed->route.pkey_index, route->pkey_index);
  };
  CHECK(indexes() == std::pair(0, 0));
  // At either end, and with or without the bit of full members. It wins over the index.
  ours.options.pkey = {.index = 0, .value = 0x0001};
  CHECK(indexes() == std::pair(1, 2));
  ours.options.pkey = {};
  theirs.options.pkey = {.index = 0, .value = 0x8001};
  CHECK(indexes() == std::pair(1, 2));
}

TEST_CASE("connect agree: a port without the partition key is named with the keys that it has",
          "[unit][connect]") {
  IbPort ours = ib_port(kOurLid, {gid_entry(0, 0, 1)});
  ours.facts.pkeys = {0xffff, 0x8001};
  const wire::PathOffer offer = make_offer(ours.side()).value();
  ours.options.pkey.value = 0x8003;
  const auto made = make_offer(ours.side());
  const auto agreed = agree(ours.side(), offer, "h1", {});
  REQUIRE_FALSE(made);
  REQUIRE_FALSE(agreed);
  for (const std::string& text : {made.error().text, agreed.error().text}) {
    INFO(text);
    CHECK(text.find("mlx5_0 port 1 has no partition key 0x8003") != std::string::npos);
    CHECK(text.find("NCCL_IB_PKEY_VALUE") != std::string::npos);
    CHECK(text.find("it has 0xffff at index 0, 0x8001 at index 1") != std::string::npos);
  }
}

TEST_CASE("connect agree: the speed of a path is that of the slower port", "[unit][connect]") {
  IbPort ours = ib_port(kOurLid, {gid_entry(0, 0, 1)});
  IbPort theirs = ib_port(kTheirLid, {gid_entry(0, 0, 1)});
  const auto speed = [&](std::uint32_t accepting, std::uint32_t connecting) {
    ours.facts.speed_mbps = accepting;
    theirs.facts.speed_mbps = connecting;
    const auto agreed = agree(ours.side(), make_offer(theirs.side()).value(), "h1", {});
    if (!agreed) FAIL(agreed.error().text);
    const auto route = route_of(theirs.side(), agreed->answer);
    if (!route) FAIL(route.error().text);
    CHECK(route->speed_mbps == agreed->route.speed_mbps);
    return route->speed_mbps;
  };
  CHECK(speed(400'000, 100'000) == 100'000);
  CHECK(speed(100'000, 400'000) == 100'000);
  CHECK(speed(0, 200'000) == 200'000);
  CHECK(speed(200'000, 0) == 200'000);
  CHECK(speed(0, 0) == 0);
}

TEST_CASE("connect agree: the paths of a comm get different UDP ports", "[unit][connect]") {
  // As Linux computes it from a flow label (rdma_flow_label_to_udp_sport).
  const auto port_of = [](std::uint32_t label) {
    return ((label & 0x3fff) ^ (label & 0xf'c000) >> 14) | 0xc000;
  };
  for (int round = 0; round < 100; ++round) {
    const FlowLabels first = random_flow_labels();
    std::set<std::uint32_t> ours;
    std::set<std::uint32_t> theirs;
    for (std::uint8_t path = 0; path < wire::kMaxPaths; ++path) {
      const FlowLabels labels = flow_labels_of(first, path);
      CHECK(labels.ours <= 0xf'ffff);
      CHECK(labels.ours != 0);
      CHECK(labels.theirs != 0);
      ours.insert(port_of(labels.ours));
      theirs.insert(port_of(labels.theirs));
    }
    CHECK(ours.size() == wire::kMaxPaths);
    CHECK(theirs.size() == wire::kMaxPaths);
  }
}
