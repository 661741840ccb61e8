// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace beeline::tools {

// The name of the softnic host that this process runs on, or else that of this host.
std::string name_of_this_host();

}  // namespace beeline::tools
