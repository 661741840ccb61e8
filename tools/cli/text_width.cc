// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/text_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace beeline::tools {
namespace {

constexpr std::size_t kUsualWidth = 100;

}  // namespace

std::size_t output_width() noexcept {
  winsize size = {};
  const bool is_known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0;
  return is_known ? size.ws_col : kUsualWidth;
}

std::size_t help_width() noexcept { return std::clamp<std::size_t>(output_width(), 60, 100); }

std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::string all;
  std::size_t column = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::size_t length = end - at;
    if (column > indent && column + 1 + length > width) {
      all += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      all += ' ';
      ++column;
    }
    all += text.substr(at, length);
    column += length;
    at = end + 1;
  }
  return all;
}

}  // namespace beeline::tools
