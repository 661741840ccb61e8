// SPDX-License-Identifier: Apache-2.0
#include "topology/render/svg_text.h"

#include "topology/render/utf8.h"
#include "topology/xml_escape.h"

namespace beeline::topology {

std::string escaped(std::string_view text) { return escape_xml(printable(text)); }

std::string shortened(std::string_view text, std::size_t most) {
  std::string shown = printable(text);
  if (count_characters(shown) <= most) return shown;
  return std::string(first_characters(shown, most - 2)) + "..";
}

std::vector<std::string> wrapped(std::string_view text, std::size_t most) {
  const std::string shown = printable(text);
  std::vector<std::string> lines;
  for (std::string_view rest = shown; !rest.empty();) {
    std::string_view line = first_characters(rest, most);
    const bool is_last = line.size() == rest.size();
    if (const std::size_t space = line.rfind(' ');
        !is_last && space != 0 && space != std::string_view::npos) {
      line = line.substr(0, space);
    }
    lines.emplace_back(line);
    rest.remove_prefix(line.size());
    if (rest.starts_with(' ')) rest.remove_prefix(1);
  }
  return lines;
}

}  // namespace beeline::topology
