// SPDX-License-Identifier: Apache-2.0
//
// Tests of the command line of `beeline perf`.
#include "tests/support/catch.h"
#include "tools/perf/options.h"

namespace beeline::perf {
namespace {

using Sizes = std::vector<size_t>;

TEST_CASE("options: sizes are numbers, suffixes and ranges that double", "[tools][options]") {
  CHECK(*parse_sizes("0,7,4K,1M") == Sizes{0, 7, 4096, 1 << 20});
  CHECK(*parse_sizes("8..64") == Sizes{8, 16, 32, 64});
  CHECK(*parse_sizes("0..4") == Sizes{0, 1, 2, 4});
  CHECK(*parse_sizes("3..13") == Sizes{3, 6, 12});
  CHECK(*parse_sizes("1G") == Sizes{size_t{1} << 30});
}

TEST_CASE("options: sizes in steps, as nccl-tests has them", "[tools][options]") {
  CHECK(*parse_steps("8", "64", std::nullopt) == Sizes{8, 16, 32, 64});
  CHECK(*parse_steps("1K", "1M", 32) == Sizes{1024, 32768, 1 << 20});
  CHECK(*parse_steps("0", "3", 3) == Sizes{0, 1, 3});
  CHECK(*parse_steps("1G", "1G", 1024) == Sizes{size_t{1} << 30});
  CHECK(*parse_steps("4K", "", std::nullopt) == Sizes{4096});
  const auto error = [](const char* begin, const char* end, std::optional<int> factor) {
    const auto sizes = parse_steps(begin, end, factor);
    return sizes ? "" : sizes.error().text;
  };
  CHECK(error("", "8", std::nullopt) == "-e and -f: also name the smallest size with -b");
  CHECK(error("8", "", 2) == "-f 2: also name the largest size with -e");
  CHECK(error("8", "64", 1).starts_with("-f 1: write 2 to 1024"));
  CHECK(error("1K", "8", std::nullopt) == "-b 1K is more than -e 8");
  CHECK(error("8", "64Q", std::nullopt).starts_with("\"64Q\" is not a size"));
}

TEST_CASE("options: the error for an invalid size names it", "[tools][options]") {
  for (const std::string bad : {"", "4Q", "K", "-1", "1.5K", "2G", "99999999999999999999", "4KK"}) {
    CAPTURE(bad);
    const auto sizes = parse_sizes(bad);
    REQUIRE_FALSE(sizes);
    CHECK(sizes.error().text.find(bad) != std::string::npos);
  }
  CHECK(parse_sizes("64..8").error().text ==
        "the range 64..8 is reversed: write the smaller number first");
}

TEST_CASE("options: devices are given for each rank, in groups", "[tools][options]") {
  CHECK(*parse_devices("a1,b1/a2,b2") == DeviceSpec{{"a1", "b1"}, {"a2", "b2"}});
  CHECK(*parse_devices("0") == DeviceSpec{{"0"}});
  CHECK_FALSE(parse_devices("a,,b"));
  CHECK_FALSE(parse_devices("a/"));
}

TEST_CASE("options: a variable is for all ranks, or for one", "[tools][options]") {
  const auto all = parse_variable("NAME=a:b=c");
  REQUIRE(all);
  CHECK(all->rank == RankVariable::kAllRanks);
  CHECK(all->name == "NAME");
  CHECK(all->value == "a:b=c");
  const auto one = parse_variable("3:NAME=");
  REQUIRE(one);
  CHECK(one->rank == 3);
  CHECK(one->name == "NAME");
  CHECK(one->value.empty());
  for (const std::string bad : {"NAME", "=x", "x:NAME=1", "1:=2"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_variable(bad));
  }
}

TEST_CASE("options: a version may begin with v", "[tools][options]") {
  CHECK(*parse_abi("v8") == 8);
  CHECK(*parse_abi("12") == 12);
  CHECK_FALSE(parse_abi("v5"));
  CHECK_FALSE(parse_abi("v13"));
  CHECK_FALSE(parse_abi("new"));
}

TEST_CASE("options: memory and flush are printed as they are parsed", "[tools][options]") {
  CHECK(*parse_memory("mixed") == MemoryChoice::kMixed);
  CHECK(to_string(*parse_memory("peermem")) == std::string("peermem"));
  CHECK(parse_memory("gpu").error().text == "--memory gpu: write host, peermem, dmabuf or mixed");
  CHECK(*parse_flush("never") == FlushChoice::kNever);
  CHECK(to_string(*parse_flush("always")) == std::string("always"));
  CHECK(parse_flush("").error().text == "--flush : write auto, always or never");
}

}  // namespace
}  // namespace beeline::perf
