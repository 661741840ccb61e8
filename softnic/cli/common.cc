// SPDX-License-Identifier: Apache-2.0
#include "softnic/cli/common.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "common/base/terminal_text.h"

namespace softnic::cli {

int report_error(const std::string& reason, int code) {
  const std::string text = "softnic: " + reason + "\n";
  fmt::print(stderr, "{}", beeline::fitted_to_terminal(text, STDERR_FILENO));
  return code;
}

std::string env_or(const char* variable, const std::string& otherwise) {
  const char* const value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

std::string fabric_name(const std::string& option) {
  return option.empty() ? env_or("SOFTNIC_FABRIC", "default") : option;
}

std::string columns(const std::vector<std::vector<std::string>>& rows, const std::string& indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths.resize(std::max(widths.size(), c + 1));
      widths[c] = std::max(widths[c], row[c].size());
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line = indent;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += fmt::format("{:<{}}", row[c], widths[c] + 2);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace softnic::cli
