// SPDX-License-Identifier: Apache-2.0
// Parsing that the fabric file and the command line share: units, ranges, suggestions, statuses.
#include <infiniband/verbs.h>

#include "softnic/spec/link_rate.h"
#include "softnic/spec/names.h"
#include "softnic/spec/units.h"
#include "softnic/spec/wc_status.h"
#include "tests/support/catch.h"

namespace {

using Words = std::vector<std::string>;

Words must_expand(const std::string& pattern) {
  auto names = softnic::expand_range(pattern, 100);
  if (!names) FAIL(names.error().text);
  return *std::move(names);
}

}  // namespace

TEST_CASE("spec_words: a printed rate is parsed to the same rate", "[unit]") {
  const auto [rate, text] =
      GENERATE(table<std::uint64_t, const char*>({{0, "max"},
                                                  {1, "1"},
                                                  {999, "999"},
                                                  {64'000, "64k"},
                                                  {200'000'000, "200M"},
                                                  {1'500'000'000, "1.5G"},
                                                  {12'500'000'000, "12.5G"}}));
  CHECK(softnic::rate_text(rate) == text);
  const auto parsed = softnic::parse_rate(text);
  REQUIRE(parsed.has_value());
  CHECK(*parsed == rate);
}

TEST_CASE("spec_words: a printed time is parsed to the same time", "[unit]") {
  const auto [ns, text] = GENERATE(table<std::uint64_t, const char*>({{0, "0"},
                                                                      {1, "1ns"},
                                                                      {500, "500ns"},
                                                                      {2'000, "2us"},
                                                                      {2'500, "2.5us"},
                                                                      {1'000'000, "1ms"},
                                                                      {90'000'000'000, "90s"}}));
  CHECK(softnic::duration_text(ns) == text);
  const auto parsed = softnic::parse_duration_ns(text);
  REQUIRE(parsed.has_value());
  CHECK(*parsed == ns);
}

TEST_CASE("spec_words: a printed share is parsed to the same share", "[unit]") {
  for (const auto& [ppm, text] :
       {std::pair{std::uint64_t{0}, "0"}, std::pair{std::uint64_t{1}, "1ppm"},
        std::pair{std::uint64_t{999}, "999ppm"}, std::pair{std::uint64_t{1000}, "0.1%"},
        std::pair{std::uint64_t{25'001}, "2.5001%"}, std::pair{std::uint64_t{1'000'000}, "100%"}}) {
    CHECK(softnic::share_text(ppm) == text);
    CHECK(softnic::parse_share_ppm(text).value_or(7) == ppm);
  }
}

TEST_CASE("spec_words: only scripts and runs may be longer than 100 seconds", "[unit]") {
  CHECK(!softnic::parse_duration_ns("101s"));
  CHECK(softnic::parse_long_duration_ns("101s").value_or(0) == 101'000'000'000);
  CHECK(!softnic::parse_long_duration_ns("86401s"));
}

TEST_CASE("spec_words: a text that is not a quantity is refused", "[unit]") {
  for (const char* text :
       {"", "M", "-1M", "1e3", "1 M", "1MB", "0x10", "nan", "inf", "1.2.3", " 1"})
    CHECK_FALSE(softnic::parse_rate(text).has_value());
  for (const char* text : {"", "us", "-1us", "1", "1 us", "1m", "nans", "00"})
    CHECK_FALSE(softnic::parse_duration_ns(text).has_value());
}

TEST_CASE("spec_words: a range expands in order and keeps leading zeros", "[unit]") {
  CHECK(must_expand("h") == Words{"h"});
  CHECK(must_expand("h[0-2]") == Words{"h0", "h1", "h2"});
  CHECK(must_expand("n[08-10]x") == Words{"n08x", "n09x", "n10x"});
  CHECK(must_expand("h[3-3]") == Words{"h3"});
}

TEST_CASE("spec_words: a malformed range is refused", "[unit]") {
  for (const char* text : {"h[", "h]", "h[]", "h[1]", "h[-1]", "h[1-]", "h[2-1]", "h[a-b]",
                           "h]1-2[", "h[1-2][3-4]", "h-[1]", "h[0-100000]", "h[0-100]"})
    CHECK_FALSE(softnic::expand_range(text, 100).has_value());
}

TEST_CASE("spec_words: a mistyped word finds the one that was meant", "[unit]") {
  const Words known{"gbps", "mtu", "rate", "latency", "network"};
  CHECK(softnic::nearest_name("gpbs", known) == "gbps");
  CHECK(softnic::nearest_name("latnecy", known) == "latency");
  CHECK(softnic::nearest_name("net", known) == "network");
  CHECK(softnic::nearest_name("colour", known).empty());
  CHECK(softnic::nearest_name("", known).empty());
}

TEST_CASE("spec_words: a listing reads as a sentence and stays short", "[unit]") {
  CHECK(softnic::list_text({}) == "none");
  CHECK(softnic::list_text(Words{"a"}) == "a");
  CHECK(softnic::list_text(Words{"a", "b"}) == "a and b");
  CHECK(softnic::list_text(Words{"a", "b", "c"}) == "a, b and c");
  CHECK_THAT(softnic::list_text(Words(100, "x")), Catch::EndsWith("x and 72 more"));
}

TEST_CASE("spec_words: every error status of verbs has a name that is read back", "[unit]") {
  for (std::uint32_t status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_GENERAL_ERR; ++status) {
    const auto parsed = softnic::parse_wc_status(softnic::wc_status_name(status));
    REQUIRE(parsed.has_value());
    CHECK(*parsed == status);
  }
  CHECK(softnic::wc_status_name(99) == "status 99");
}

TEST_CASE("spec_words: a link rate is width times speed", "[unit]") {
  const auto lanes = [](std::uint8_t width) {
    switch (width) {
      case 1: return 1.0;
      case 2: return 4.0;
      case 4: return 8.0;
      case 16: return 2.0;
      default: return 0.0;
    }
  };
  const auto lane_gbps = [](std::uint8_t speed) {
    switch (speed) {
      case 1: return 2.5;
      case 4: return 10.0;
      case 32: return 25.0;
      case 64: return 50.0;
      case 128: return 100.0;
      default: return 0.0;
    }
  };
  for (const softnic::LinkRate& rate : softnic::link_rates()) {
    const double gbps = lanes(rate.active_width) * lane_gbps(rate.active_speed);
    CHECK(gbps == (rate.gbps == 1 ? 2.5 : rate.gbps));
  }
  CHECK(softnic::find_link_rate(123) == nullptr);
}
