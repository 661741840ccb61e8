// SPDX-License-Identifier: Apache-2.0
//
// How text looks on the terminal that it goes to: its width, and the colors of single words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace beeline::tools {

enum class Color : std::uint8_t { kNone, kBold, kRed, kGreen, kYellow };

struct TextStyle {
  std::size_t width = 100;
  bool in_color = false;
};

// Of what is written to stdout.
TextStyle output_style() noexcept;

// The same, but lines have no limit where stdout is no terminal: for tables.
TextStyle table_style() noexcept;

// Whether escape sequences may go to this descriptor: it is a terminal, and TERM names one that is
// not dumb.
bool takes_escapes(int fd) noexcept;

// Whether to color what goes to this descriptor: it takes escape sequences, and NO_COLOR
// (https://no-color.org) is unset or empty.
bool wants_color(int fd) noexcept;

// The text in this color if `in_color`. Escape sequences count as characters: align text before.
std::string colored(std::string_view text, Color color, bool in_color);

}  // namespace beeline::tools
