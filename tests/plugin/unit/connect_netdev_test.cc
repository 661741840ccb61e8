// SPDX-License-Identifier: Apache-2.0
//
// The choice of the IP address of an RDMA device's interface.
#include <arpa/inet.h>

#include "plugin/connect/socket/address.h"
#include "plugin/connect/socket/netdev_address.h"
#include "tests/support/catch.h"

using namespace beeline;

namespace {

wire::SocketAddress address(const char* text) {
  wire::SocketAddress result;
  if (inet_pton(AF_INET, text, result.bytes.data()) == 1) return result;
  result.kind = wire::AddressKind::kIpv6;
  REQUIRE(inet_pton(AF_INET6, text, result.bytes.data()) == 1);
  return result;
}

NetdevAddress own(const char* text, int prefix) {
  return {.address = address(text), .prefix = prefix};
}

std::string netdev_for(const std::vector<NetdevAddress>& ours,
                       const std::vector<wire::SocketAddress>& theirs) {
  const NetdevAddress* const found = choose_address(ours, theirs);
  return found == nullptr ? "none" : ip_text(found->address);
}

}  // namespace

TEST_CASE("connect netdev: an address is in a subnet by its leading bits", "[unit][connect]") {
  const NetdevAddress odd = own("10.1.2.129", 25);
  CHECK(is_in_subnet(odd, address("10.1.2.254")));
  CHECK_FALSE(is_in_subnet(odd, address("10.1.2.127")));
  CHECK_FALSE(is_in_subnet(odd, address("10.1.3.129")));
  CHECK(is_in_subnet(own("10.1.2.3", 32), address("10.1.2.3")));
  CHECK_FALSE(is_in_subnet(own("10.1.2.3", 32), address("10.1.2.2")));
  CHECK(is_in_subnet(own("10.1.2.3", 0), address("192.168.0.1")));
  CHECK(is_in_subnet(own("fd00::1", 64), address("fd00::2:3")));
  CHECK_FALSE(is_in_subnet(own("fd00::1", 64), address("fd00:0:0:1::1")));
  CHECK_FALSE(is_in_subnet(own("10.1.2.3", 0), address("fd00::1")));
}

TEST_CASE("connect netdev: an address in the peer's subnet is preferred", "[unit][connect]") {
  const std::vector ours{own("10.1.0.1", 24), own("10.2.0.1", 24), own("fd00::1", 64),
                         own("fe80::1", 64)};
  CHECK(netdev_for(ours, {address("10.2.0.7")}) == "10.2.0.1");
  CHECK(netdev_for(ours, {address("10.9.0.7"), address("fd00::7")}) == "fd00::1");
  CHECK(netdev_for(ours, {address("10.9.0.7")}) == "10.1.0.1");
  CHECK(netdev_for(ours, {address("fe80::7")}) == "fe80::1");
}

TEST_CASE("connect netdev: IPv4 is preferred to IPv6, and link-local is the last choice",
          "[unit][connect]") {
  const std::vector ours{own("fe80::1", 64), own("fd00::1", 64), own("169.254.0.1", 16),
                         own("10.1.0.1", 24)};
  CHECK(netdev_for(ours, {}) == "10.1.0.1");
  CHECK(netdev_for({ours[0], ours[1]}, {}) == "fd00::1");
  CHECK(netdev_for({ours[0], ours[1], ours[2]}, {}) == "fd00::1");
  CHECK(netdev_for({ours[0]}, {}) == "fe80::1");
}

TEST_CASE("connect netdev: without a family in common there is no address", "[unit][connect]") {
  CHECK(netdev_for({own("10.1.0.1", 24)}, {address("fd00::1")}) == "none");
  CHECK(netdev_for({}, {address("10.1.0.1")}) == "none");
  CHECK(netdev_for({}, {}) == "none");
}

TEST_CASE("connect netdev: loopback has its address", "[unit][connect]") {
  const auto found = addresses_of("lo");
  REQUIRE(found);
  CHECK(netdev_for(*found, {address("127.5.5.5")}) == "127.0.0.1");
  const auto none = addresses_of("nonesuch0");
  REQUIRE(none);
  CHECK(none->empty());
}
