// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/unknown_word.h"

#include <fmt/format.h>

#include "plugin/config/nearest.h"

namespace beeline::tools {

std::string unknown_word(std::string_view word, std::string_view kind,
                         const std::vector<std::string_view>& known) {
  const std::string meant = did_you_mean(word, known);
  return fmt::format("\"{}\" is not a {}{} {}s are {}", word, kind,
                     meant.empty() ? "; the" : meant + " The", kind, fmt::join(known, ", "));
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
  const std::string_view meant = nearest(word, known);
  return meant.empty() ? "" : fmt::format("; did you mean {}?", meant);
}

}  // namespace beeline::tools
