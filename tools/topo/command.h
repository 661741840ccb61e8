// SPDX-License-Identifier: Apache-2.0
//
// The command line of `beeline topo`.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace beeline::topo {

// Adds the subcommand. The function runs it, with what was parsed, and returns the exit status.
std::function<int()> add_command(CLI::App& app);

}  // namespace beeline::topo
