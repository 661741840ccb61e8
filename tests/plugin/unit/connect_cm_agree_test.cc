// SPDX-License-Identifier: Apache-2.0
//
// Whether two ends use the connection manager, and what they agree on if they do.
#include "plugin/connect/handshake/agreement.h"
#include "tests/support/catch.h"

using namespace beeline;

namespace {

struct Port {
  Device device;
  PortFacts facts;
  QpOptions options;

  PortSide side() const { return {device, facts, options}; }
};

Port port(Transport transport, bool is_requested = false, const char* netdev = "eth0") {
  Port port;
  port.device.ibdev = "dev0";
  port.device.transport = transport;
  port.device.caps.immediate = transport != Transport::kIwarp;
  port.device.caps.max_rd_atomic = 4;
  port.device.netdev = netdev;
  port.facts.active_mtu = IBV_MTU_1024;
  port.options.cm_requested = is_requested;
  return port;
}

wire::PathOffer offer_of(const Port& port) {
  wire::PathOffer offer = make_offer(port.side()).value();
  offer.qp.device = "peer0";
  offer.qp.max_rd_atomic = 2;
  return offer;
}

bool used(const Port& accepting, const Port& connecting) {
  return is_cm_used(accepting.side(), offer_of(connecting), "h1");
}

}  // namespace

TEST_CASE("connect cm: iWARP needs it, others use it if one end asks for it", "[unit][connect]") {
  CHECK(used(port(Transport::kIwarp), port(Transport::kIwarp)));
  CHECK_FALSE(used(port(Transport::kRoce), port(Transport::kRoce)));
  CHECK(used(port(Transport::kRoce, true), port(Transport::kRoce)));
  CHECK(used(port(Transport::kRoce), port(Transport::kRoce, true)));
  // A port without a network interface cannot use it.
  CHECK_FALSE(used(port(Transport::kRoce, true), port(Transport::kRoce, false, "")));
}

TEST_CASE("connect cm: iWARP and RoCE are never paired", "[unit][connect]") {
  const Port iwarp = port(Transport::kIwarp);
  const Port roce = port(Transport::kRoce);
  for (const auto& [ours, theirs] : {std::pair{&iwarp, &roce}, std::pair{&roce, &iwarp}}) {
    REQUIRE(used(*ours, *theirs));
    const auto agreed = agree_with_cm(ours->side(), offer_of(*theirs), "h1");
    REQUIRE_FALSE(agreed);
    CHECK(agreed.error().text.find("cannot talk to") != std::string::npos);
    CHECK(agreed.error().text.find("h1 peer0 port 1") != std::string::npos);
  }
}

TEST_CASE("connect cm: iWARP ports agree without partitions and GIDs, and on notices",
          "[unit][connect]") {
  const Port ours = port(Transport::kIwarp);
  const auto agreed = agree_with_cm(ours.side(), offer_of(ours), "h1");
  REQUIRE(agreed);
  CHECK(agreed->answer.notify == wire::Notify::kNotice);
  CHECK(agreed->route.reads == 2);
}

TEST_CASE("connect cm: an answer must match the offer", "[unit][connect]") {
  wire::PathAnswer with;
  with.cm.emplace();
  with.qp.max_rd_atomic = 9;
  const auto route = route_of(port(Transport::kRoce).side(), with);
  REQUIRE(route);
  CHECK(route->reads == 4);
  CHECK_FALSE(route_of(port(Transport::kRoce, false, "").side(), with));
  CHECK_FALSE(route_of(port(Transport::kIwarp).side(), wire::PathAnswer{}));
}
