// SPDX-License-Identifier: Apache-2.0
//
// The types of parameters. Each has a Value, parse(), print() (a text that parse() accepts for this
// value) and allowed() (a description of valid texts, for messages).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/port_range.h"
#include "common/base/result.h"

namespace beeline {

// The values of parameters with a fixed set of them, and their words. The first word of a value is
// the one that is printed; the others are those of NCCL.
using Tristate = std::optional<bool>;  // empty: auto
enum class IpFamily { kAny, kIpv4, kIpv6 };
enum class CmChoice { kAuto, kRdmacm };
enum class GdrLevel { kLoc, kPix, kPxb, kPhb, kSys };

template <class T>
struct Choice {
  std::string_view word;
  T value;
};

// NCCL's number for "auto" is -2 for most parameters...
inline constexpr std::array kAutoOffOn{Choice<Tristate>{"auto", std::nullopt},
                                       Choice<Tristate>{"0", false}, Choice<Tristate>{"1", true},
                                       Choice<Tristate>{"-2", std::nullopt}};
// ... and 2 for relaxed ordering.
inline constexpr std::array kAutoOffOn2{Choice<Tristate>{"auto", std::nullopt},
                                        Choice<Tristate>{"0", false}, Choice<Tristate>{"1", true},
                                        Choice<Tristate>{"2", std::nullopt}};

// NCCL's words for distances, and its older numbers. Distances between PXB and PHB in NCCL (P2C,
// PXN) are PXB here.
inline constexpr std::array kGdrLevels{
    Choice<GdrLevel>{"LOC", GdrLevel::kLoc}, Choice<GdrLevel>{"PIX", GdrLevel::kPix},
    Choice<GdrLevel>{"PXB", GdrLevel::kPxb}, Choice<GdrLevel>{"P2C", GdrLevel::kPxb},
    Choice<GdrLevel>{"PXN", GdrLevel::kPxb}, Choice<GdrLevel>{"PHB", GdrLevel::kPhb},
    Choice<GdrLevel>{"SYS", GdrLevel::kSys}, Choice<GdrLevel>{"0", GdrLevel::kLoc},
    Choice<GdrLevel>{"1", GdrLevel::kPix},   Choice<GdrLevel>{"2", GdrLevel::kPxb},
    Choice<GdrLevel>{"3", GdrLevel::kPhb},   Choice<GdrLevel>{"4", GdrLevel::kSys},
    Choice<GdrLevel>{"5", GdrLevel::kSys}};

inline constexpr std::array kIpFamilies{Choice<IpFamily>{"any", IpFamily::kAny},
                                        Choice<IpFamily>{"AF_INET", IpFamily::kIpv4},
                                        Choice<IpFamily>{"AF_INET6", IpFamily::kIpv6}};

inline constexpr std::array kCmChoices{Choice<CmChoice>{"auto", CmChoice::kAuto},
                                       Choice<CmChoice>{"rdmacm", CmChoice::kRdmacm}};

// The reason why a text is not valid.
enum class Refusal { kUnreadable, kOutOfRange };

template <class T>
using Parsed = Result<T, Refusal>;

// 0 or 1, or yes, no, on, off, true or false. As in NCCL, any other number counts as 1.
class Bool {
 public:
  using Value = bool;
  static constexpr std::string_view kKind = "switch";

  static Parsed<bool> parse(std::string_view text);
  static std::string print(bool value) { return value ? "1" : "0"; }
  static std::string allowed() { return "0 or 1"; }
};

// An integer: decimal, or hexadecimal with 0x.
class Count {
 public:
  using Value = int;
  static constexpr std::string_view kKind = "number";

  constexpr Count(int low, int high) noexcept : low_(low), high_(high) {}

  Parsed<int> parse(std::string_view text) const;
  static std::string print(int value) { return std::to_string(value); }
  std::string allowed() const { return print(low_) + " to " + print(high_); }

 private:
  int low_;
  int high_;
};

struct Unit {
  std::string_view name;
  std::int64_t factor;
};
inline constexpr std::array kSizes{Unit{"", 1}, Unit{"K", 1LL << 10}, Unit{"M", 1LL << 20},
                                   Unit{"G", 1LL << 30}};
inline constexpr std::array kTimes{Unit{"ms", kNsPerMs}, Unit{"s", kNsPerSec}};
Parsed<std::int64_t> parse_with_unit(std::string_view text, std::span<const Unit> units,
                                     std::int64_t low, std::int64_t high);
// In the largest unit that leaves no remainder.
std::string print_with_unit(std::int64_t value, std::span<const Unit> units);

template <const auto& kUnits>
class WithUnit {
 public:
  using Value = std::int64_t;

  constexpr WithUnit(std::int64_t low, std::int64_t high) noexcept : low_(low), high_(high) {}

  Parsed<std::int64_t> parse(std::string_view text) const {
    return parse_with_unit(text, kUnits, low_, high_);
  }
  static std::string print(std::int64_t value) { return print_with_unit(value, kUnits); }
  std::string allowed() const { return print(low_) + " to " + print(high_); }

 private:
  std::int64_t low_;
  std::int64_t high_;
};

// A number of bytes, or of KiB, MiB or GiB with the suffix K, M or G.
struct Bytes : WithUnit<kSizes> {
  using WithUnit::WithUnit;
  static constexpr std::string_view kKind = "size";
};

// A time in nanoseconds. The text must have the unit ms or s, because a number alone would be
// ambiguous.
struct Duration : WithUnit<kTimes> {
  using WithUnit::WithUnit;
  static constexpr std::string_view kKind = "time";
};

// TCP ports: the first and the last one, or a single one. 0: any.
class Ports {
 public:
  using Value = PortRange;
  static constexpr std::string_view kKind = "ports";

  static Parsed<PortRange> parse(std::string_view text);
  static std::string print(const PortRange& value);
  static std::string allowed() { return "FIRST-LAST, each 1024 to 65535, or 0"; }
};

// One of a list of words; upper and lower case are equal.
template <class T, std::size_t N>
class OneOf {
 public:
  using Value = T;
  static constexpr std::string_view kKind = "choice";

  constexpr explicit OneOf(const std::array<Choice<T>, N>& choices) noexcept : choices_(choices) {}

  Parsed<T> parse(std::string_view text) const;
  std::string print(T value) const;
  std::string allowed() const;

 private:
  std::array<Choice<T>, N> choices_;
};

// Any text. The code that uses it parses it.
class Text {
 public:
  using Value = std::string;
  static constexpr std::string_view kKind = "text";

  static Parsed<std::string> parse(std::string_view text) { return std::string(text); }
  static std::string print(const std::string& value) { return value; }
  static std::string allowed() { return "any text"; }
};

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;

template <class T, std::size_t N>
Parsed<T> OneOf<T, N>::parse(std::string_view text) const {
  for (const Choice<T>& choice : choices_) {
    if (equal_ignoring_case(choice.word, text)) return choice.value;
  }
  return fail(Refusal::kUnreadable);
}

template <class T, std::size_t N>
std::string OneOf<T, N>::print(T value) const {
  for (const Choice<T>& choice : choices_) {
    if (choice.value == value) return std::string(choice.word);
  }
  return {};
}

// "auto, 0, 1 or 2".
template <class T, std::size_t N>
std::string OneOf<T, N>::allowed() const {
  std::string words(choices_.front().word);
  for (std::size_t i = 1; i < N; ++i) {
    words += i + 1 == N ? " or " : ", ";
    words += choices_[i].word;
  }
  return words;
}

}  // namespace beeline
