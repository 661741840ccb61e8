// SPDX-License-Identifier: Apache-2.0
//
// See outcome.h.
#include "tools/outcome.h"

#include <fmt/format.h>

#include <cstdio>
#include <new>

namespace beeline::tools {

std::string describe(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "there is not enough memory";
  return error.what();
}

int complain(const std::string& reason, int code) {
  fmt::print(stderr, "beeline: {}\n", reason);
  return code;
}

}  // namespace beeline::tools
