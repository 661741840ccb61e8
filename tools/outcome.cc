// SPDX-License-Identifier: Apache-2.0
//
// See outcome.h.
#include "tools/outcome.h"

#include <fmt/format.h>

#include <cstdio>

namespace beeline::tools {

int complain(const std::string& reason, int code) {
  fmt::print(stderr, "beeline: {}\n", reason);
  return code;
}

}  // namespace beeline::tools
