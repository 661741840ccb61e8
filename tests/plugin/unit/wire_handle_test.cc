// SPDX-License-Identifier: Apache-2.0
//
// The handle that NCCL carries to the connecting process.
#include <random>

#include "tests/support/catch.h"
#include "tests/support/wire_samples.h"

using namespace beeline;
using namespace beeline::test;
using namespace beeline::wire;

namespace {

using HandleArray = std::array<std::byte, kHandleBytes>;

HandleArray encoded(const Handle& handle) {
  HandleArray bytes;
  bytes.fill(std::byte{0xee});  // the old content of NCCL's memory
  encode(handle, bytes);
  return bytes;
}

}  // namespace

TEST_CASE("wire handle: what was encoded is decoded", "[unit][wire]") {
  const auto decoded = decode_handle(encoded(sample_handle()));
  REQUIRE(decoded);
  CHECK(*decoded == sample_handle());
}

TEST_CASE("wire handle: names are cut to what fits", "[unit][wire]") {
  Handle handle = sample_handle();
  handle.host = "a-very-long-host-name.example.org";
  handle.device = "mlx5_bond_0123456789:1";
  const auto decoded = decode_handle(encoded(handle));
  REQUIRE(decoded);
  CHECK(decoded->host == "a-very-long-host");
  CHECK(decoded->device == "mlx5_bond_012345");
  CHECK(decoded->token == handle.token);
}

TEST_CASE("wire handle: a new one has no attempt number", "[unit][wire]") {
  HandleArray bytes = encoded(sample_handle());
  CHECK(attempt_in(bytes) == 0);
  set_attempt(bytes, 0x1234'5678'9abc'def0);
  CHECK(attempt_in(bytes) == 0x1234'5678'9abc'def0);
  const auto decoded = decode_handle(bytes);
  REQUIRE(decoded);
  CHECK(*decoded == sample_handle());
}

TEST_CASE("wire handle: one of another plugin and one of another version have different errors",
          "[unit][wire]") {
  HandleArray foreign = encoded(sample_handle());
  foreign[3] ^= std::byte{0x40};
  REQUIRE_FALSE(decode_handle(foreign));
  CHECK(decode_handle(foreign).error().code == Errc::kProtocol);

  // The one that a Beeline with one path for each comm makes, and that of a future one.
  Handle older = sample_handle();
  older.versions = {.least = 1, .most = 1};
  CHECK(decode_handle(encoded(older)).error().code == Errc::kUnsupported);
  Handle newer = sample_handle();
  newer.versions = {.least = 3, .most = 4};
  const HandleArray bytes = encoded(newer);
  REQUIRE_FALSE(decode_handle(bytes));
  CHECK(decode_handle(bytes).error().code == Errc::kUnsupported);
  REQUIRE(versions_of(bytes));
  CHECK(*versions_of(bytes) == newer.versions);
}

TEST_CASE("wire handle: a field out of its range is an error", "[unit][wire]") {
  Handle handle = sample_handle();
  SECTION("port") { handle.address.port = 0; }
  SECTION("address kind") { handle.address.kind = static_cast<AddressKind>(2); }
  SECTION("no rail") { handle.counts.rails = 0; }
  SECTION("too many rails") { handle.counts.rails = kMaxRails + 1; }
  SECTION("no queue pair") { handle.counts.qps_per_rail = 0; }
  SECTION("too many queue pairs") { handle.counts.qps_per_rail = kMaxPaths + 1; }
  SECTION("versions backward") { handle.versions = {.least = 2, .most = 1}; }
  SECTION("version zero") { handle.versions = {.least = 0, .most = 1}; }
  CHECK_FALSE(decode_handle(encoded(handle)));
}

TEST_CASE("wire handle: a change of any bit is noticed, but for the attempt's", "[unit][wire]") {
  for (std::size_t bit = 0; bit < std::size_t{116} * 8; ++bit) {
    HandleArray bytes = encoded(sample_handle());
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    const bool is_attempt = bit / 8 >= 104 && bit / 8 < 112;
    CHECK(decode_handle(bytes).has_value() == is_attempt);
  }
}

TEST_CASE("wire handle: random bytes do not harm the decoder", "[unit][wire]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    HandleArray bytes = encoded(sample_handle());
    for (int i = 0; i < 8; ++i) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    const auto decoded = decode_handle(bytes);
    if (decoded) CHECK(decode_handle(encoded(*decoded)));
  }
}

TEST_CASE("wire handle: two secrets are the same if all of their bytes are", "[unit][wire]") {
  const Token token = test::counting<16>(100);
  CHECK(is_same_secret(token, token));
  for (std::size_t i = 0; i < token.size(); ++i) {
    Token other = token;
    other[i] ^= 0x80;
    CHECK_FALSE(is_same_secret(token, other));
  }
}
