// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/text_style.h"

#include <unistd.h>

#include <cstdlib>

#include "tools/cli/text_width.h"

namespace beeline::tools {
namespace {

const char* escape_of(Color color) noexcept {
  switch (color) {
    case Color::kNone: return "";
    case Color::kBold: return "\033[1m";
    case Color::kRed: return "\033[31m";
    case Color::kGreen: return "\033[32m";
    case Color::kYellow: return "\033[33m";
  }
  return "";
}

std::string_view variable(const char* name) noexcept {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

TextStyle output_style() noexcept {
  return {.width = output_width(), .in_color = wants_color(STDOUT_FILENO)};
}

TextStyle table_style() noexcept {
  return {.width = terminal_width(), .in_color = wants_color(STDOUT_FILENO)};
}

bool takes_escapes(int fd) noexcept {
  const std::string_view terminal = variable("TERM");
  return ::isatty(fd) == 1 && !terminal.empty() && terminal != "dumb";
}

bool wants_color(int fd) noexcept { return takes_escapes(fd) && variable("NO_COLOR").empty(); }

std::string colored(std::string_view text, Color color, bool in_color) {
  if (!in_color || color == Color::kNone) return std::string(text);
  return escape_of(color) + std::string(text) + "\033[0m";
}

}  // namespace beeline::tools
