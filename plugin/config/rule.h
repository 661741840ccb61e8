// SPDX-License-Identifier: Apache-2.0
//
// What a parameter's text may be. Each rule has the Value it makes, parse(), print() (the text that
// parse() reads as this value) and allowed() (for people, after "is not" or "is out of range").
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

// Why a text was refused.
enum class Refusal { kUnreadable, kOutOfRange };

template <class T>
using Parsed = Result<T, Refusal>;

// 0 or 1; yes, no, on, off, true and false too. As NCCL does, any other number counts as 1.
class Bool {
 public:
  using Value = bool;
  static constexpr std::string_view kKind = "switch";

  static Parsed<bool> parse(std::string_view text);
  static std::string print(bool value) { return value ? "1" : "0"; }
  static std::string allowed() { return "0 or 1"; }
};

// A whole number, decimal, or hexadecimal after 0x.
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

// A number of bytes; K, M or G behind it multiplies by 1024 each.
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

// In nanoseconds. The unit, ms or s, must be written: a bare number would be a guess.
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

// One of a list of words, in any case.
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

// Anything. Whoever uses it reads its grammar.
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
