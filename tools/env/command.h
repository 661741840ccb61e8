// SPDX-License-Identifier: Apache-2.0
//
// The command line of `beeline env`.
#pragma once

#include "tools/cli/command_line.h"

namespace beeline::env {

// Adds the subcommand to the line, which runs it with what was parsed.
void add_command(tools::CommandLine& line);

}  // namespace beeline::env
