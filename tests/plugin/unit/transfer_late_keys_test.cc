// SPDX-License-Identifier: Apache-2.0
//
// Keys of receive buffers that came after their credit lines.
#include "plugin/transfer/late_keys.h"

#include "tests/support/catch.h"

namespace beeline {
namespace {

constexpr std::size_t kRail = 2;

wire::LineKeys keys_before(std::uint32_t next, std::vector<wire::LineKeys::Key> keys) {
  return {.next = next, .keys = std::move(keys)};
}

}  // namespace

TEST_CASE("late keys: they count for the lines before them, on their rail", "[unit][transfer]") {
  LateKeys late;
  CHECK_FALSE(late.is_for(kRail, 9));
  late.take(kRail, keys_before(10, {{9, 0x90}, {5, 0x50}}));
  CHECK(late.is_for(kRail, 9));
  CHECK(late.key(kRail, 9) == 0x90);
  CHECK(late.key(kRail, 5) == 0x50);
  CHECK(late.is_for(kRail, 8));
  CHECK(late.key(kRail, 8) == std::nullopt);  // the rail cannot carry it
  CHECK_FALSE(late.is_for(kRail, 10));
  CHECK_FALSE(late.is_for(kRail - 1, 9));

  late.take(kRail, keys_before(12, {{11, 0x111}}));
  CHECK(late.key(kRail, 9) == std::nullopt);
  CHECK(late.key(kRail, 11) == 0x111);
}

TEST_CASE("late keys: lines that have the same number after four billion others have none",
          "[unit][transfer]") {
  LateKeys late;
  late.take(kRail, keys_before(10, {{9, 0x90}}));
  late.forget_before(9);
  late.forget_before(10 + wire::kMaxLines - 1);
  CHECK(late.is_for(kRail, 9));
  late.forget_before(10 + wire::kMaxLines);
  CHECK_FALSE(late.is_for(kRail, 9));
}

}  // namespace beeline
