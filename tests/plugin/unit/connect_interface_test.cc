// SPDX-License-Identifier: Apache-2.0
//
// The choice of the network interface for control channels.
#include "plugin/connect/socket/interface.h"

#include "plugin/connect/socket/address.h"
#include "tests/support/catch.h"

using namespace beeline;

namespace {

Interface v4(const std::string& name, std::uint8_t a, std::uint8_t b) {
  Interface made{.name = name, .address = {.kind = wire::AddressKind::kIpv4}};
  made.address.bytes = {a, b, 0, 1};
  return made;
}
Interface v6(const std::string& name, std::uint8_t a, std::uint8_t b, std::uint8_t last,
             std::uint32_t scope = 0) {
  Interface made{.name = name, .address = {.kind = wire::AddressKind::kIpv6}};
  made.address.bytes[0] = a;
  made.address.bytes[1] = b;
  made.address.bytes[15] = last;
  made.address.scope = scope;
  return made;
}

const std::vector<Interface> kHost = {
    v4("lo", 127, 0),       v6("lo", 0, 0, 1),   v4("docker0", 172, 17),
    v4("eth0", 169, 254),   v4("eth10", 10, 1),  v6("eth1", 0xfe, 0x80, 7, 3),
    v6("eth1", 0xfd, 0, 9), v4("ib0", 192, 168),
};

std::string chosen(std::string_view filter, std::string_view family = "",
                   const std::vector<Interface>& host = kHost) {
  const auto result = choose_interface(host, filter, family);
  return result ? result->name + " " + ip_text(result->address) : "error: " + result.error().text;
}

}  // namespace

TEST_CASE("interface: without a filter, loopback, docker and link-local are avoided",
          "[unit][connect]") {
  CHECK(chosen("") == "eth10 10.1.0.1");
  CHECK(chosen("", "AF_INET6") == "eth1 fd00::9");
}

TEST_CASE("interface: an avoided interface is used if there is no other", "[unit][connect]") {
  CHECK(chosen("", "", {kHost[0], kHost[1]}) == "lo 127.0.0.1");
  CHECK(chosen("", "", {kHost[0], kHost[2]}) == "docker0 172.17.0.1");
  CHECK(chosen("", "", {kHost[0], kHost[5]}) == "eth1 fe80::7%3");
}

TEST_CASE("interface: a filter has prefixes, = exact names and ^ exclusions", "[unit][connect]") {
  CHECK(chosen("ib") == "ib0 192.168.0.1");
  CHECK(chosen("lo") == "lo 127.0.0.1");
  CHECK(chosen("eth1") == "eth10 10.1.0.1");
  CHECK(chosen("=eth1") == "eth1 fd00::9");
  CHECK(chosen("=ib,eth1") == "eth1 fd00::9");
  CHECK(chosen("nothing,docker") == "docker0 172.17.0.1");
  CHECK(chosen("^eth10") == "ib0 192.168.0.1");
  CHECK(chosen("^eth,ib") == "docker0 172.17.0.1");
  CHECK(chosen("^=eth1,eth10,ib0") == "eth0 169.254.0.1");
}

TEST_CASE("interface: no match is an error that lists what there is", "[unit][connect]") {
  CHECK(chosen("bond", "AF_INET", {kHost[0], kHost[5]}) ==
        "error: no network interface for the control channel matches NCCL_SOCKET_IFNAME=bond, "
        "NCCL_SOCKET_FAMILY=AF_INET; this host has lo (127.0.0.1), eth1 (fe80::7%3)");
  CHECK(chosen("", "", {}) ==
        "error: no network interface for the control channel; this host has none that is up");
}

TEST_CASE("interface: this host has a loopback", "[unit][connect]") {
  const auto interfaces = list_interfaces();
  REQUIRE(interfaces);
  CHECK(choose_interface(*interfaces, "lo", "AF_INET"));
}
