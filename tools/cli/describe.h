// SPDX-License-Identifier: Apache-2.0
//
// Descriptions of a command line for other programs, made from what its help is made from.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace beeline::tools {

// For man(1): of the subcommand, or of the program itself.
std::string man_page(const CLI::App& program, const CLI::App& command, const std::string& version);

// By subcommand: the words that may be its positional argument.
using Offered = std::map<std::string, std::vector<std::string>>;

// A script for bash or zsh, which completes subcommands, options, these words, and files where they
// are the value of an option or of a positional argument. `help` takes what `man` does.
std::string bash_completion(const CLI::App& program, const Offered& offered);
std::string zsh_completion(const CLI::App& program, const Offered& offered);

}  // namespace beeline::tools
