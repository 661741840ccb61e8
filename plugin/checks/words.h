// SPDX-License-Identifier: Apache-2.0
//
// Takes apart lines of words, and builds texts such as "mlx5_0, mlx5_1". Streams would do the same,
// but the plugin is better off without them: they need a constructor that runs when it is loaded.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace beeline::checks {

// The parts between separators, without empty ones.
std::vector<std::string> split(std::string_view text, std::string_view separators = " \t");

// Whether shells leave the text alone, without quotes and however many of them read it.
bool is_literal_in_shells(std::string_view text) noexcept;

inline void append_item(std::string& list, std::string_view item,
                        std::string_view separator = ", ") {
  if (!list.empty()) list += separator;
  list += item;
}

inline std::string listed(const std::set<std::string>& names) {
  std::string list;
  for (const std::string& name : names) append_item(list, name);
  return list;
}

}  // namespace beeline::checks
