// SPDX-License-Identifier: Apache-2.0
//
// The rules of parameters: which texts they accept, and as which values.
#include "plugin/config/rule.h"

#include <optional>

#include "tests/support/catch.h"

namespace beeline {
namespace {

template <class T>
std::optional<T> value(const Parsed<T>& parsed) {
  if (!parsed) return std::nullopt;
  return *parsed;
}
template <class T>
std::optional<Refusal> refusal(const Parsed<T>& parsed) {
  if (parsed) return std::nullopt;
  return parsed.error();
}

TEST_CASE("rule: a switch accepts 0 and 1, words, and NCCL's values", "[unit][config]") {
  for (const char* text : {"1", "2", "-1", "yes", "ON", "True"}) {
    INFO(text);
    CHECK(value(Bool::parse(text)) == true);
  }
  for (const char* text : {"0", "0x0", "no", "Off", "FALSE"}) {
    INFO(text);
    CHECK(value(Bool::parse(text)) == false);
  }
  for (const char* text : {"maybe", "1x", "-", "0x"}) {
    INFO(text);
    CHECK(refusal(Bool::parse(text)) == Refusal::kUnreadable);
  }
}

TEST_CASE("rule: a number must be in its range, ends included", "[unit][config]") {
  const Count count(-1, 31);
  CHECK(value(count.parse("-1")) == -1);
  CHECK(value(count.parse("31")) == 31);
  CHECK(value(count.parse("+7")) == 7);
  CHECK(value(count.parse("0x1F")) == 31);
  CHECK(refusal(count.parse("-2")) == Refusal::kOutOfRange);
  CHECK(refusal(count.parse("32")) == Refusal::kOutOfRange);
}

TEST_CASE("rule: a number too large for any type is out of range", "[unit][config]") {
  const Count count(0, 100);
  CHECK(refusal(count.parse("99999999999999999999999")) == Refusal::kOutOfRange);
  CHECK(refusal(count.parse("-99999999999999999999999")) == Refusal::kOutOfRange);
  // 2^32 would be 0 in an int.
  CHECK(refusal(count.parse("4294967296")) == Refusal::kOutOfRange);
}

TEST_CASE("rule: a text that is no number is refused", "[unit][config]") {
  for (const char* text : {"", "x", "-", "--1", "+-1", "0x", "0x-1", "3 4", "3ms", "1.5", "1e3"}) {
    INFO(text);
    CHECK(refusal(Count(-100, 100).parse(text)) == Refusal::kUnreadable);
  }
}

TEST_CASE("rule: a size takes K, M and G", "[unit][config]") {
  const Bytes bytes(0, 1LL << 40);
  CHECK(value(bytes.parse("8192")) == 8192);
  CHECK(value(bytes.parse("8K")) == 8192);
  CHECK(value(bytes.parse("4m")) == 4 << 20);
  CHECK(value(bytes.parse("1024G")) == 1LL << 40);
  CHECK(refusal(bytes.parse("1025G")) == Refusal::kOutOfRange);
  CHECK(refusal(bytes.parse("9000000000000000000G")) == Refusal::kOutOfRange);
  CHECK(refusal(bytes.parse("17179869184G")) == Refusal::kOutOfRange);  // would be 0 in 64 bits
  CHECK(refusal(bytes.parse("-1")) == Refusal::kOutOfRange);
  CHECK(refusal(bytes.parse("4KB")) == Refusal::kUnreadable);
  CHECK(refusal(bytes.parse("K")) == Refusal::kUnreadable);
}

TEST_CASE("rule: a time needs its unit", "[unit][config]") {
  const Duration duration(kNsPerMs, 60 * kNsPerSec);
  CHECK(value(duration.parse("250ms")) == 250 * kNsPerMs);
  CHECK(value(duration.parse("20s")) == 20 * kNsPerSec);
  CHECK(refusal(duration.parse("20")) == Refusal::kUnreadable);
  CHECK(refusal(duration.parse("20m")) == Refusal::kUnreadable);
  CHECK(refusal(duration.parse("61s")) == Refusal::kOutOfRange);
  CHECK(refusal(duration.parse("9223372036854775807s")) == Refusal::kOutOfRange);
}

TEST_CASE("rule: TCP ports are a range, one port, or any", "[unit][config]") {
  CHECK(value(Ports::parse("50000-50999")) == PortRange{50000, 50999});
  CHECK(value(Ports::parse("50000")) == PortRange{50000, 50000});
  CHECK(value(Ports::parse("0")) == PortRange{});
  CHECK(refusal(Ports::parse("1023-2000")) == Refusal::kOutOfRange);
  CHECK(refusal(Ports::parse("50000-49999")) == Refusal::kOutOfRange);
  CHECK(refusal(Ports::parse("50000-65536")) == Refusal::kOutOfRange);
  for (const char* const text : {"50000-", "50000-50010-50020", "50000:50010", "any", ""})
    CHECK(refusal(Ports::parse(text)) == Refusal::kUnreadable);
  for (const PortRange range : {PortRange{}, PortRange{50000, 50999}})
    CHECK(value(Ports::parse(Ports::print(range))) == range);
}

TEST_CASE("rule: a choice accepts its words in any case, and nothing else", "[unit][config]") {
  const OneOf adaptive(kAutoOffOn);
  CHECK(adaptive.parse("auto").value() == Tristate());
  CHECK(adaptive.parse("-2").value() == Tristate());
  CHECK(value(adaptive.parse("0")) == false);
  CHECK(value(adaptive.parse("1")) == true);
  CHECK(refusal(adaptive.parse("2")) == Refusal::kUnreadable);
  CHECK(OneOf(kAutoOffOn2).parse("2").value() == Tristate());
  CHECK(value(OneOf(kIpFamilies).parse("af_inet6")) == IpFamily::kIpv6);
  CHECK(refusal(OneOf(kIpFamilies).parse("AF_INET66")) == Refusal::kUnreadable);
}

TEST_CASE("rule: a printed value is parsed as the same value", "[unit][config]") {
  const Bytes bytes(0, 1LL << 40);
  for (const std::int64_t size : {0LL, 1LL, 1023LL, 1024LL, 1536LL, 3LL << 20, 5LL << 30}) {
    CHECK(value(bytes.parse(Bytes::print(size))) == size);
  }
  const Duration duration(0, 1000 * kNsPerSec);
  for (const std::int64_t ms : {0, 1, 999, 1000, 1500, 60000}) {
    CHECK(value(duration.parse(Duration::print(ms * kNsPerMs))) == ms * kNsPerMs);
  }
  for (const Tristate word : {Tristate(), Tristate(false), Tristate(true)}) {
    CHECK(OneOf(kAutoOffOn).parse(OneOf(kAutoOffOn).print(word)).value() == word);
  }
  CHECK(Bytes::print(1536) == "1536");
  CHECK(Bytes::print(8192) == "8K");
  CHECK(Duration::print(60 * kNsPerSec) == "60s");
  CHECK(Duration::print(1500 * kNsPerMs) == "1500ms");
}

TEST_CASE("rule: the allowed values have a text", "[unit][config]") {
  CHECK(Count(1, 31).allowed() == "1 to 31");
  CHECK(Bytes(0, 1 << 20).allowed() == "0 to 1M");
  CHECK(Duration(kNsPerSec, 60 * kNsPerSec).allowed() == "1s to 60s");
  CHECK(OneOf(kAutoOffOn).allowed() == "auto, 0, 1 or -2");
}

}  // namespace
}  // namespace beeline
