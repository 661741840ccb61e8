// SPDX-License-Identifier: Apache-2.0
#include "common/base/terminal_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace beeline {

std::size_t terminal_columns(int fd) noexcept {
  winsize size = {};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::size_t help_columns() noexcept {
  constexpr std::size_t kLeast = 60;
  constexpr std::size_t kMost = 100;
  const std::size_t columns = terminal_columns(STDOUT_FILENO);
  return columns == 0 ? kMost : std::clamp(columns, kLeast, kMost);
}

std::string broken_at_blanks(const std::string& text, std::size_t first, std::size_t indent,
                             std::size_t width) {
  std::string all;
  std::size_t column = first;
  bool begins_line = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::size_t length = end - at;
    if (!begins_line && column + 1 + length > width) {
      all.erase(all.find_last_not_of(' ') + 1);
      all += "\n" + std::string(indent, ' ');
      column = indent;
      begins_line = true;
    } else if (!begins_line) {
      all += ' ';
      ++column;
    }
    all += text.substr(at, length);
    column += length;
    begins_line = begins_line && length == 0;
    at = end + 1;
  }
  return all;
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

std::string fitted_to_terminal(std::string_view text, int fd) {
  const std::size_t columns = terminal_columns(fd);
  return fitted(text, columns == 0 ? std::string::npos : columns);
}

}  // namespace beeline
