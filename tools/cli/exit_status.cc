// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/exit_status.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <new>
#include <string_view>

#include "common/base/terminal_text.h"
#include "topology/render/utf8.h"

namespace beeline::tools {

std::string describe(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "there is not enough memory";
  return error.what();
}

int print_error(const Problem& problem, int status) {
  // A line may contain text of a file or of another process. The line breaks are the command's own.
  std::string_view rest = problem.text;
  std::string shown;
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    shown += topology::printable(rest.substr(0, end)) + "\n";
    rest.remove_prefix(end + 1);
  }
  shown = fmt::format("beeline: {}{}\n", shown, topology::printable(rest));
  fmt::print(stderr, "{}", fitted_to_terminal(shown, STDERR_FILENO));
  return status;
}

}  // namespace beeline::tools
