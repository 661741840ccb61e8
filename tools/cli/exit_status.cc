// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/exit_status.h"

#include <fmt/format.h>

#include <cstdio>
#include <new>

#include "topology/render/utf8.h"

namespace beeline::tools {

std::string describe(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "there is not enough memory";
  return error.what();
}

int print_error(const Problem& problem, int status) {
  // It may contain text of a file or of another process.
  fmt::print(stderr, "beeline: {}\n", topology::printable(problem.text));
  return status;
}

}  // namespace beeline::tools
