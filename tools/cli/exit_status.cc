// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/exit_status.h"

#include <fmt/format.h>

#include <cstdio>
#include <new>

namespace beeline::tools {

std::string describe(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "there is not enough memory";
  return error.what();
}

int print_error(const Problem& problem, int status) {
  fmt::print(stderr, "beeline: {}\n", problem.text);
  return status;
}

}  // namespace beeline::tools
