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

bool is_literal_in_shells(std::string_view text) noexcept {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:/=^@+-%~";
  if (text.find_first_not_of(kPlain) != std::string_view::npos) return false;
  // They expand "~" only at the beginning of a word or of a part of it.
  for (std::size_t at = text.find('~'); at != std::string_view::npos; at = text.find('~', at + 1)) {
    if (at == 0 || text[at - 1] == ':' || text[at - 1] == '=') return false;
  }
  return true;
}

}  // namespace beeline::checks
