// SPDX-License-Identifier: Apache-2.0
//
// The command line of `beeline hang`.
#pragma once

#include "tools/cli/command_line.h"

namespace beeline::hang {

// Adds the subcommand to the line, which runs it with what was parsed.
void add_command(tools::CommandLine& line);

}  // namespace beeline::hang
