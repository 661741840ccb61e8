// SPDX-License-Identifier: Apache-2.0
//
// Decodes UTF-8 as RFC 3629 requires: no overlong forms, no surrogates, nothing above U+10FFFF.
#include "topology/render/utf8.h"

#include <algorithm>

namespace beeline::topology {
namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: not well-formed
};

constexpr bool is_continuation(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// The number of bytes of a character with this first byte; 0 if no character begins with it.
std::size_t bytes_of(unsigned char first) noexcept {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

Character decode(std::string_view text) noexcept {
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t bytes = bytes_of(first);
  if (bytes == 0 || bytes > text.size()) return {};
  char32_t code = bytes == 1 ? first : first & (0xffU >> (bytes + 1));
  for (const char c : text.substr(1, bytes - 1)) {
    if (!is_continuation(c)) return {};
    code = code << 6U | (static_cast<unsigned char>(c) & 0x3fU);
  }
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kSmallest[bytes] || code > 0x10ffff || is_surrogate) return {};
  return {.code = code, .bytes = bytes};
}

bool is_shown(char32_t code) noexcept {
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool is_no_character = (code & 0xfffe) == 0xfffe;
  return !is_control && !is_no_character;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const Character character = decode(text);
    const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
    const bool is_good = character.bytes > 0 && is_shown(character.code);
    shown += is_good ? text.substr(0, bytes) : std::string_view("?");
    text.remove_prefix(bytes);
  }
  return shown;
}

std::size_t count_characters(std::string_view text) noexcept {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, is_continuation));
}

std::string_view first_characters(std::string_view text, std::size_t count) noexcept {
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if (is_continuation(text[end])) continue;
    if (count == 0) break;
    --count;
  }
  return text.substr(0, end);
}

}  // namespace beeline::topology
