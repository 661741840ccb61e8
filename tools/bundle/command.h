// SPDX-License-Identifier: Apache-2.0
//
// The command line of `beeline bundle`.
#pragma once

#include "tools/cli/command_line.h"

namespace beeline::bundle {

void add_command(tools::CommandLine& line);

}  // namespace beeline::bundle
