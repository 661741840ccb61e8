// SPDX-License-Identifier: Apache-2.0
#include "plugin/checks/words.h"

#include <algorithm>

namespace beeline::checks {

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return parts;
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

}  // namespace beeline::checks
