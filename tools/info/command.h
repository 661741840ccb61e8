// SPDX-License-Identifier: Apache-2.0
//
// `beeline info`: what this build is, what its plugin finds here, and how it is set.
#pragma once

#include <string>

#include "tools/cli/command_line.h"

namespace beeline::info {

// `version`: what `beeline --version` prints. `protocol`: as in "2", or "1 to 2".
void add_command(tools::CommandLine& line, const std::string& version, const std::string& protocol);

}  // namespace beeline::info
