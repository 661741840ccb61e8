// SPDX-License-Identifier: Apache-2.0
//
// The command line of `beeline perf`.
#pragma once

#include "tools/cli/command_line.h"

namespace beeline::perf {

// Adds the subcommand to the command line, which runs it with the parsed options.
void add_command(tools::CommandLine& line);

}  // namespace beeline::perf
