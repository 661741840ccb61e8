// SPDX-License-Identifier: Apache-2.0
#include "common/base/host.h"

#include <unistd.h>

namespace beeline {

std::string host_name() {
  char text[256] = "";
  if (gethostname(text, sizeof text - 1) != 0 || text[0] == '\0') return "localhost";
  return text;
}

}  // namespace beeline
