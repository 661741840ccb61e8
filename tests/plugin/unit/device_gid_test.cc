// SPDX-License-Identifier: Apache-2.0
//
// GIDs, and the choice of the pair that two ends use.
#include <string>
#include <vector>

#include "plugin/device/gid_choice.h"
#include "tests/support/catch.h"

namespace beeline {
namespace {

// "10.0.1.2" or "fe80::1".
Gid gid(const char* text) {
  const auto range = parse_gid_range(text);
  REQUIRE(range);
  return range->value().base;
}

GidEntry v1(int index, const char* text) {
  return {static_cast<std::uint16_t>(index), GidType::kRoceV1, gid(text), ""};
}
GidEntry v2(int index, const char* text) {
  return {static_cast<std::uint16_t>(index), GidType::kRoceV2, gid(text), ""};
}
GidEntry ib(int index, const char* text) {
  return {static_cast<std::uint16_t>(index), GidType::kIb, gid(text), ""};
}

using Table = std::vector<GidEntry>;

// A table as the kernel fills it: link-local, then each address, each as v1 and as v2.
Table usual(const char* link_local, const char* address) {
  return {v1(0, link_local), v2(1, link_local), v1(2, address), v2(3, address)};
}

struct Ends {
  Table ours;
  Table theirs;
  GidPolicy our_policy = {};
  GidPolicy their_policy = {};

  Outcome<GidPair> choose() const {
    return choose_gids({ours, our_policy, "h0 mlx5_0"}, {theirs, their_policy, "h1 mlx5_7"});
  }
  // "3 3", or the refusal.
  std::string chosen() const {
    const auto pair = choose();
    if (!pair) return pair.error().text;
    return std::to_string(pair->local_index) + " " + std::to_string(pair->remote_index);
  }
};

TEST_CASE("gid: the kind of an address is recognized", "[unit][device][gid]") {
  CHECK(is_ipv4_mapped(gid("10.0.1.2")));
  CHECK_FALSE(is_ipv4_mapped(gid("fd00::1")));
  CHECK_FALSE(is_ipv4_mapped(gid("::1")));
  CHECK(is_link_local(gid("fe80::1")));
  CHECK(is_link_local(gid("febf::1")));
  CHECK_FALSE(is_link_local(gid("fec0::1")));
  CHECK(is_link_local(gid("169.254.3.4")));
  CHECK_FALSE(is_link_local(gid("169.253.3.4")));
  CHECK(is_zero(Gid{}));
  CHECK_FALSE(is_zero(gid("::1")));
  CHECK(subnet_prefix(gid("fe80::1")) == 0xfe80000000000000);
  CHECK(to_string(gid("10.0.1.2")) == "10.0.1.2");
  CHECK(to_string(gid("fd00:0::1")) == "fd00::1");
}

TEST_CASE("gid: the common prefix is counted in bits", "[unit][device][gid]") {
  CHECK(common_prefix(gid("10.0.1.2"), gid("10.0.1.2")) == 128);
  CHECK(common_prefix(gid("10.0.1.2"), gid("10.0.1.3")) == 127);
  CHECK(common_prefix(gid("10.0.1.2"), gid("10.1.1.2")) == 96 + 15);
  CHECK(common_prefix(gid("8000::"), gid("::1")) == 0);
}

TEST_CASE("gid range: an address with a prefix length", "[unit][device][gid]") {
  CHECK(parse_gid_range("").value() == std::nullopt);
  const GidRange ten = parse_gid_range("10.0.0.0/8").value().value();
  CHECK(ten.prefix == 104);
  CHECK(is_in(ten, gid("10.255.0.1")));
  CHECK_FALSE(is_in(ten, gid("11.0.0.1")));
  CHECK_FALSE(is_in(ten, gid("fd00::1")));
  CHECK(is_in(parse_gid_range("fd00::/16")->value(), gid("fd00:1::2")));
  CHECK_FALSE(is_in(parse_gid_range("fd00::/16")->value(), gid("fd01::2")));
  CHECK(parse_gid_range("10.0.1.2")->value().prefix == 128);
  CHECK(is_in(parse_gid_range("0.0.0.0/0")->value(), gid("1.2.3.4")));
  CHECK(parse_gid_range("::ffff:10.0.0.0/104")->value() == ten);
}

TEST_CASE("gid range: nonsense is named", "[unit][device][gid]") {
  for (const char* const bad : {"10.0.0/8", "10.0.0.0/33", "fd00::/129", "10.0.0.0/", "10.0.0.0/8x",
                                "10.0.0.0/-1", "everything"}) {
    CAPTURE(bad);
    const auto range = parse_gid_range(bad);
    REQUIRE_FALSE(range);
    CHECK(range.error().text.find(bad) != std::string::npos);
  }
}

TEST_CASE("gid choice: RoCE v2 with global addresses before everything else",
          "[unit][device][gid]") {
  CHECK(Ends{usual("fe80::1", "10.0.1.1"), usual("fe80::2", "10.0.1.2")}.chosen() == "3 3");
}

TEST_CASE("gid choice: link-local is used if there is no other", "[unit][device][gid]") {
  const Table a = {v1(0, "fe80::1"), v2(1, "fe80::1")};
  const Table b = {v1(0, "fe80::2"), v2(1, "fe80::2")};
  CHECK(Ends{a, b}.chosen() == "1 1");
  // Both link-local beats one of each.
  CHECK(Ends{a, {v2(1, "fe80::2"), v2(2, "fd00::2")}}.chosen() == "1 1");
}

TEST_CASE("gid choice: IPv4 first, unless IPv6 is wished", "[unit][device][gid]") {
  const Table a = {v2(1, "fd00::1"), v2(2, "10.0.0.1")};
  const Table b = {v2(4, "fd00::2"), v2(5, "10.9.0.2")};
  CHECK(Ends{a, b}.chosen() == "2 5");
  const GidPolicy ipv6{.family = AddressFamily::kIpv6};
  CHECK(Ends{a, b, ipv6, ipv6}.chosen() == "1 4");
  // A preference that cannot be met does not prevent a choice.
  CHECK(Ends{{v2(2, "10.0.0.1")}, b, ipv6, ipv6}.chosen() == "2 5");
}

TEST_CASE("gid choice: an IPv6-only fabric needs no wish", "[unit][device][gid]") {
  CHECK(Ends{{v2(0, "fe80::1"), v2(1, "fd00::1")}, {v2(0, "fe80::2"), v2(1, "fd00::2")}}.chosen() ==
        "1 1");
}

TEST_CASE("gid choice: never one address family with the other", "[unit][device][gid]") {
  const Ends ends{{v2(0, "10.0.0.1")}, {v2(0, "fd00::1")}};
  const std::string refusal = ends.chosen();
  CHECK(refusal.find("h0 mlx5_0") != std::string::npos);
  CHECK(refusal.find("h1 mlx5_7") != std::string::npos);
  CHECK(refusal.find("10.0.0.1") != std::string::npos);
  CHECK(refusal.find("fd00::1") != std::string::npos);
}

TEST_CASE("gid choice: the pair in one subnet, where ends have several addresses",
          "[unit][device][gid]") {
  const Table a = {v2(2, "192.168.5.1"), v2(3, "10.1.0.1"), v2(9, "10.2.0.1")};
  const Table b = {v2(1, "10.3.0.2"), v2(5, "10.2.0.2")};
  CHECK(Ends{a, b}.chosen() == "9 5");
  CHECK(Ends{b, a}.chosen() == "5 9");
}

TEST_CASE("gid choice: one address on two hosts is not the peer", "[unit][device][gid]") {
  const Table a = {v2(1, "172.17.0.1"), v2(2, "10.0.0.1")};
  const Table b = {v2(1, "172.17.0.1"), v2(2, "10.0.0.2")};
  CHECK(Ends{a, b}.chosen() == "2 2");
  // But a port that talks to itself does so with one of its addresses.
  const Table both = {v2(1, "10.0.0.1"), v2(2, "10.0.0.2")};
  CHECK(Ends{both, both}.chosen() == "1 1");
}

TEST_CASE("gid choice: both ends use the same RoCE version", "[unit][device][gid]") {
  CHECK(Ends{{v1(0, "10.0.0.1")}, {v1(0, "10.0.0.2"), v2(1, "10.0.0.2")}}.chosen() == "0 0");
  const GidPolicy one{.roce_version = 1};
  CHECK(Ends{usual("fe80::1", "10.0.1.1"), usual("fe80::2", "10.0.1.2"), one}.chosen() == "2 2");
}

TEST_CASE("gid choice: a version that was asked for and is not there is refused by name",
          "[unit][device][gid]") {
  const Ends ends{{v1(0, "10.0.0.1")}, usual("fe80::2", "10.0.0.2"), {.roce_version = 2}};
  CHECK(ends.chosen() == "no RoCE v2 GID on h0 mlx5_0: found only RoCE v1 10.0.0.1 at index 0");
}

TEST_CASE("gid choice: each side's fixed index is used", "[unit][device][gid]") {
  const Table a = usual("fe80::1", "10.0.1.1");
  const Table b = usual("fe80::2", "10.0.1.2");
  CHECK(Ends{a, b, {.fixed_index = 1}}.chosen() == "1 1");
  CHECK(Ends{a, b, {}, {.fixed_index = 2}}.chosen() == "2 2");
  // It takes precedence over the side's other settings.
  CHECK(Ends{a, b, {.fixed_index = 0, .roce_version = 2}}.chosen() == "0 0");
  const std::string refusal = Ends{a, b, {}, {.fixed_index = 7}}.chosen();
  CHECK(refusal.find("no GID index 7 on h1 mlx5_7") == 0);
}

TEST_CASE("gid choice: tables are sparse, so an index is not a position", "[unit][device][gid]") {
  CHECK(Ends{{v2(200, "10.0.0.1")}, {v2(17, "10.0.0.2")}}.chosen() == "200 17");
}

TEST_CASE("gid choice: only addresses of the configured range", "[unit][device][gid]") {
  const Table a = {v2(1, "10.0.0.1"), v2(2, "192.168.0.1")};
  const Table b = {v2(1, "10.0.0.2"), v2(2, "192.168.0.2")};
  const GidPolicy range{.range = parse_gid_range("192.168.0.0/16").value()};
  CHECK(Ends{a, b, range}.chosen() == "2 2");
  CHECK(Ends{a, b, {}, range}.chosen() == "2 2");
  const GidPolicy elsewhere{.range = parse_gid_range("172.16.0.0/12").value()};
  CHECK(Ends{a, b, elsewhere}.chosen().find("no GID in 172.16.0.0/12 on h0 mlx5_0") == 0);
}

TEST_CASE("gid choice: the error says that a table is empty", "[unit][device][gid]") {
  CHECK(Ends{{v2(1, "10.0.0.1")}, {}}.chosen() == "no GID on h1 mlx5_7: found only no GID at all");
}

TEST_CASE("gid choice: InfiniBand uses index 0, and a GRH between subnets", "[unit][device][gid]") {
  const Table a = {ib(0, "fe80::1"), ib(1, "fe80:0:0:1::1")};
  const Table b = {ib(0, "fe80::2")};
  const auto near = choose_ib_gids({a, {}, "a"}, {b, {}, "b"});
  REQUIRE(near);
  CHECK(near->local_index == 0);
  CHECK(near->remote_index == 0);
  CHECK_FALSE(near->grh);
  const auto far = choose_ib_gids({a, {.fixed_index = 1}, "a"}, {b, {}, "b"});
  REQUIRE(far);
  CHECK(far->local_index == 1);
  CHECK(far->grh);
  CHECK(choose_ib_gids({a, {.fixed_index = 3}, "a"}, {b, {}, "b"})
            .error()
            .text.find("index 3 on a") != std::string::npos);
}

TEST_CASE("gid choice: InfiniBand uses the GID with a FLID, at the index where it may be",
          "[unit][device][gid]") {
  // A FLID of 0x11 and 0x12; the subnets 1, 1 and 2.
  const Table a = {ib(0, "fe80:0:0:1::1"), ib(1, "fe80:0:11:1::1")};
  const Table near = {ib(0, "fe80:0:0:1::2"), ib(1, "fe80:0:12:1::2")};
  const Table far = {ib(0, "fe80:0:0:2::3"), ib(1, "fe80:0:12:2::3")};
  const GidPolicy policy{.flid_index = 1};
  const auto within = choose_ib_gids({a, policy, "a"}, {near, {}, "b"});
  REQUIRE(within);
  CHECK(within->local_index == 1);
  CHECK(within->remote_index == 1);
  CHECK_FALSE(within->grh);
  const auto across = choose_ib_gids({a, policy, "a"}, {far, {}, "c"});
  REQUIRE(across);
  CHECK(across->remote_index == 1);
  CHECK(across->grh);
  const auto elsewhere = choose_ib_gids({a, {.flid_index = 2}, "a"}, {far, {}, "c"});
  REQUIRE(elsewhere);
  CHECK(elsewhere->local_index == 0);
  CHECK(elsewhere->grh);
}

}  // namespace
}  // namespace beeline
