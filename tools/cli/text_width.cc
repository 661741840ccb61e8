// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/text_width.h"

#include <unistd.h>

namespace beeline::tools {
namespace {

constexpr std::size_t kUsualWidth = 100;

}  // namespace

std::size_t terminal_width() noexcept {
  const std::size_t columns = terminal_columns(STDOUT_FILENO);
  return columns == 0 ? std::string::npos : columns;
}

std::size_t output_width() noexcept {
  const std::size_t width = terminal_width();
  return width == std::string::npos ? kUsualWidth : width;
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  return broken_at_blanks(text, indent, indent, width);
}

}  // namespace beeline::tools
