// SPDX-License-Identifier: Apache-2.0
#include "common/base/natural_order.h"

namespace beeline {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

std::string_view take_digits(std::string_view& text) noexcept {
  while (text.size() > 1 && text[0] == '0' && is_digit(text[1])) text.remove_prefix(1);
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  const std::string_view number = text.substr(0, digits);
  text.remove_prefix(digits);
  return number;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) noexcept {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a[0]) && is_digit(b[0])) {
      const std::string_view x = take_digits(a);
      const std::string_view y = take_digits(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[0] != b[0]) return a[0] < b[0];
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // "a01" and "a1" are different names
}

}  // namespace beeline
