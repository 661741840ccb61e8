// SPDX-License-Identifier: Apache-2.0
//
// `beeline replay`.
#pragma once

#include "tools/cli/command_line.h"

namespace beeline::replay {

void add_command(tools::CommandLine& line);

}  // namespace beeline::replay
