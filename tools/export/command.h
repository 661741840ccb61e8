// SPDX-License-Identifier: Apache-2.0
//
// The command line of `beeline export`.
#pragma once

#include <string>

#include "tools/cli/command_line.h"

namespace beeline::exporter {  // `export` is a word of C++

// Adds the subcommand to the line, which runs it with what was parsed. `protocol` becomes a label.
void add_command(tools::CommandLine& line, const std::string& protocol);

}  // namespace beeline::exporter
