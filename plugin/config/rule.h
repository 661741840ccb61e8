// SPDX-License-Identifier: Apache-2.0
//
// The types of parameters. Each has a Value, parse(), print() (a text that parse() accepts for this
// value) and allowed() (a description of valid texts, for messages).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "plugin/config/choices.h"

namespace beeline {

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

// A number of bytes, or of KiB, MiB or GiB with the suffix K, M or G.
class Bytes {
 public:
  using Value = std::int64_t;
  static constexpr std::string_view kKind = "size";

  constexpr Bytes(std::int64_t low, std::int64_t high) noexcept : low_(low), high_(high) {}

  Parsed<std::int64_t> parse(std::string_view text) const;
  static std::string print(std::int64_t value);
  std::string allowed() const { return print(low_) + " to " + print(high_); }

 private:
  std::int64_t low_;
  std::int64_t high_;
};

// A time in nanoseconds. The text must have the unit ms or s, because a number alone would be
// ambiguous.
class Duration {
 public:
  using Value = std::int64_t;
  static constexpr std::string_view kKind = "time";

  constexpr Duration(std::int64_t low_ns, std::int64_t high_ns) noexcept
      : low_ns_(low_ns), high_ns_(high_ns) {}

  Parsed<std::int64_t> parse(std::string_view text) const;
  static std::string print(std::int64_t value_ns);
  std::string allowed() const { return print(low_ns_) + " to " + print(high_ns_); }

 private:
  std::int64_t low_ns_;
  std::int64_t high_ns_;
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
