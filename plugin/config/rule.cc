// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/rule.h"

#include <algorithm>
#include <charconv>
#include <span>

namespace beeline {
namespace {

struct Number {
  std::int64_t value;
  std::string_view rest;  // the text after it
};

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The number in front. Too big for 64 bits counts as out of range, whatever the range is.
Parsed<Number> leading_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  if (text.starts_with('-')) return fail(Refusal::kUnreadable);  // from_chars would take a second

  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, hexadecimal ? 16 : 10);
  if (error == std::errc::invalid_argument) return fail(Refusal::kUnreadable);
  if (error != std::errc{}) return fail(Refusal::kOutOfRange);
  return Number{negative ? -value : value, {stop, static_cast<size_t>(end - stop)}};
}

Parsed<std::int64_t> within(std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) return fail(Refusal::kOutOfRange);
  return value;
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

Parsed<bool> Bool::parse(std::string_view text) {
  for (const std::string_view word : {"yes", "on", "true"}) {
    if (equal_ignoring_case(text, word)) return true;
  }
  for (const std::string_view word : {"no", "off", "false"}) {
    if (equal_ignoring_case(text, word)) return false;
  }
  const Number number = BL_TRY(leading_number(text));
  if (!number.rest.empty()) return fail(Refusal::kUnreadable);
  return number.value != 0;
}

Parsed<int> Count::parse(std::string_view text) const {
  const Number number = BL_TRY(leading_number(text));
  if (!number.rest.empty()) return fail(Refusal::kUnreadable);
  return static_cast<int>(BL_TRY(within(number.value, low_, high_)));
}

Parsed<std::int64_t> parse_with_unit(std::string_view text, std::span<const Unit> units,
                                     std::int64_t low, std::int64_t high) {
  const Number number = BL_TRY(leading_number(text));
  const auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& known) {
    return equal_ignoring_case(known.name, number.rest);
  });
  if (unit == units.end()) return fail(Refusal::kUnreadable);
  std::int64_t value = 0;
  if (__builtin_mul_overflow(number.value, unit->factor, &value)) return fail(Refusal::kOutOfRange);
  return within(value, low, high);
}

Parsed<PortRange> Ports::parse(std::string_view text) {
  const Number first = BL_TRY(leading_number(text));
  if (first.value == 0 && first.rest.empty()) return PortRange{};
  Number last = first;
  if (first.rest.starts_with('-')) last = BL_TRY(leading_number(first.rest.substr(1)));
  if (!last.rest.empty()) return fail(Refusal::kUnreadable);
  const std::int64_t low = BL_TRY(within(first.value, 1024, 65535));
  const std::int64_t high = BL_TRY(within(last.value, low, 65535));
  return PortRange{static_cast<std::uint16_t>(low), static_cast<std::uint16_t>(high)};
}

std::string Ports::print(const PortRange& value) {
  if (value == PortRange{}) return "0";
  return std::to_string(value.first) + "-" + std::to_string(value.last);
}

std::string print_with_unit(std::int64_t value, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0) best = &unit;
  }
  return std::to_string(value / best->factor) + std::string(best->name);
}

}  // namespace beeline
