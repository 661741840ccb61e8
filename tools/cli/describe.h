// SPDX-License-Identifier: Apache-2.0
//
// Descriptions of a command line for other programs, made from what its help is made from.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace beeline::tools {

// For man(1): of the subcommand, or of the program itself.
std::string man_page(const CLI::App& program, const CLI::App& command, const std::string& version);

// A script for bash or zsh, which completes subcommands and options.
std::string bash_completion(const CLI::App& program);
std::string zsh_completion(const CLI::App& program);

}  // namespace beeline::tools
