// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/host_name.h"

#include <cstdlib>

#include "common/base/host.h"

namespace beeline::tools {

std::string name_of_this_host() {
  const char* const softnic = std::getenv("SOFTNIC_HOST");
  return softnic == nullptr ? host_name() : softnic;
}

}  // namespace beeline::tools
