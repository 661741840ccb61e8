// SPDX-License-Identifier: Apache-2.0
//
// The message about a word that is none of those that may stand in its place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace beeline::tools {

// "frob" is not a subcommand; did you mean from? The subcommands are from, to
std::string unknown_word(std::string_view word, std::string_view kind,
                         const std::vector<std::string_view>& known);

// "; did you mean --json?", or empty if none is similar.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace beeline::tools
