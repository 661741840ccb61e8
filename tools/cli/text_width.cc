// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/text_width.h"

#include <unistd.h>

#include <algorithm>

#include "common/base/terminal_text.h"

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

std::size_t help_width() noexcept { return help_columns(); }

std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  return broken_at_blanks(text, indent, indent, width);
}

std::string fitted(std::string_view text, std::size_t width) {
  std::string all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, end));
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    all += line.size() <= width
               ? line
               : line.substr(0, indent) +
                     broken_at_blanks(line.substr(indent), indent, indent + 2, width);
    if (end < text.size()) all += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

}  // namespace beeline::tools
