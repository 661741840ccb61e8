// SPDX-License-Identifier: Apache-2.0
#include "common/base/host.h"

#include <unistd.h>

namespace beeline {

const std::string& host_name() {
  // Never destroyed: a thread of the plugin may log while the process exits.
  static const std::string& name = *new std::string([] {
    char text[256] = "";
    if (gethostname(text, sizeof text - 1) != 0 || text[0] == '\0') return std::string("localhost");
    return std::string(text);
  }());
  return name;
}

}  // namespace beeline
