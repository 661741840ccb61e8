// SPDX-License-Identifier: Apache-2.0
//
// The MTU, P_Key and other values that two ends agree on.
#include "plugin/device/agree.h"

#include <vector>

#include "tests/support/catch.h"

namespace beeline {
namespace {

using Keys = std::vector<std::uint16_t>;

TEST_CASE("agree: the smaller MTU", "[unit][device][agree]") {
  CHECK(agree_mtu(IBV_MTU_4096, IBV_MTU_1024).value() == IBV_MTU_1024);
  CHECK(agree_mtu(IBV_MTU_256, IBV_MTU_4096).value() == IBV_MTU_256);
  CHECK(agree_mtu(IBV_MTU_4096, 0).error().code == Errc::kProtocol);
  CHECK(agree_mtu(IBV_MTU_4096, 6).error().code == Errc::kProtocol);
}

TEST_CASE("agree: a common partition is found at any index", "[unit][device][agree]") {
  const Keys ours = {0xffff, 0x8001, 0x8002};
  const Keys theirs = {0x8002, 0, 0x0001};
  const auto pair = agree_pkey({ours}, {theirs});
  REQUIRE(pair);
  CHECK(pair->local_index == 1);
  CHECK(pair->remote_index == 2);
}

TEST_CASE("agree: two limited members may not talk", "[unit][device][agree]") {
  const Keys limited = {0x7fff};
  const Keys full = {0xffff};
  CHECK(agree_pkey({limited}, {full}));
  CHECK(agree_pkey({full}, {limited}));
  const auto refused = agree_pkey({.table = limited, .who = "h0"}, {.table = limited, .who = "h1"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text.find("0x7fff at index 0 on h0, 0x7fff at index 0 on h1") !=
        std::string::npos);
}

TEST_CASE("agree: an empty entry is no partition", "[unit][device][agree]") {
  const Keys empty = {0, 0x8000};  // no partition has the number 0
  CHECK_FALSE(agree_pkey({empty}, {empty}));
}

TEST_CASE("agree: a side's fixed P_Key index is used", "[unit][device][agree]") {
  const Keys ours = {0xffff, 0x8001};
  const Keys theirs = {0x8001, 0xffff};
  const auto fixed = agree_pkey({ours, {1}}, {theirs});
  REQUIRE(fixed);
  CHECK(fixed->local_index == 1);
  CHECK(fixed->remote_index == 0);
  const auto refused = agree_pkey({ours, {1}}, {theirs, {1}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text.find("index 1 is set") != std::string::npos);
  CHECK_FALSE(agree_pkey({ours, {9}}, {theirs}));
}

TEST_CASE("agree: for loopback a port uses a partition in which it is a full member",
          "[unit][device][agree]") {
  const Keys keys = {0, 0x7fff, 0x8001, 0xffff};
  CHECK(choose_own_pkey({keys}).value() == 2);
  CHECK(choose_own_pkey({keys, {3}}).value() == 3);
  const auto limited = choose_own_pkey({keys, {1}});
  REQUIRE_FALSE(limited);
  CHECK(limited.error().text.find("0x7fff at index 1 (index 1 is set)") != std::string::npos);
  CHECK_FALSE(choose_own_pkey({keys, {9}}));
  CHECK_FALSE(choose_own_pkey({Keys{0x8000}}));
}

TEST_CASE("agree: of a partition that is in the table twice the full membership is used",
          "[unit][device][agree]") {
  const Keys keys = {0xffff, 0x0001, 0x8001, 0};
  CHECK(fixed_pkey_index({keys, {.value = 0x0001}}).value() == 2);
  CHECK(fixed_pkey_index({keys, {.index = 7, .value = 0x8001}}).value() == 2);
  CHECK(fixed_pkey_index({Keys{0x0001}, {.value = 0x8001}}).value() == 0);
  CHECK(fixed_pkey_index({keys, {.index = 7}}).value() == 7);
  CHECK(fixed_pkey_index({keys}).value() == -1);
  CHECK_FALSE(fixed_pkey_index({keys, {.value = 0x8000}}));
  CHECK(choose_own_pkey({keys, {.value = 0x0001}}).value() == 2);
  CHECK_FALSE(choose_own_pkey({Keys{0x0001}, {.value = 0x0001}}));
  CHECK_FALSE(choose_own_pkey({keys, {.value = 0x0002}}));
}

TEST_CASE("agree: the connecting side's value wins", "[unit][device][agree]") {
  CHECK(agree_value(-1, -1).value == 0);
  CHECK(agree_value(-1, 3).value == 3);
  CHECK_FALSE(agree_value(-1, 3).acceptor_overruled);
  CHECK(agree_value(5, -1).value == 5);
  CHECK_FALSE(agree_value(5, -1).acceptor_overruled);
  CHECK(agree_value(5, 3).value == 5);
  CHECK(agree_value(5, 3).acceptor_overruled);
  CHECK_FALSE(agree_value(5, 5).acceptor_overruled);
  CHECK(agree_value(0, 3).value == 0);
}

}  // namespace
}  // namespace beeline
