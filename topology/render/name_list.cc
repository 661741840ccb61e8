// SPDX-License-Identifier: Apache-2.0
#include "topology/render/name_list.h"

#include <charconv>
#include <cstdint>
#include <optional>

namespace beeline::topology {
namespace {

// The name that comes after this one. None where it does not count.
std::optional<std::string> next_name(const std::string& name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  std::uint32_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + digits, end, number);
  const bool has_leading_zero = name.size() > digits + 1 && name[digits] == '0';
  if (error != std::errc() || stop != end || has_leading_zero) return std::nullopt;
  std::string next(name, 0, digits);
  next += std::to_string(std::uint64_t{number} + 1);
  return next;
}

}  // namespace

std::string folded(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t first = 0; first < names.size();) {
    std::size_t last = first;
    while (last + 1 < names.size() && next_name(names[last]) == names[last + 1]) ++last;
    text += (text.empty() ? "" : ", ") + names[first];
    if (last < first + 2) {
      ++first;
      continue;
    }
    text += " to " + names[last];
    first = last + 1;
  }
  return text;
}

void GroupedLines::add(const std::string& line, const std::string& name) {
  const auto [group, is_new] = group_of_.try_emplace(line, groups_.size());
  if (is_new) groups_.push_back({line, {}});
  groups_[group->second].second.push_back(name);
}

std::string GroupedLines::text(const char* one, const char* many) const {
  std::string text;
  for (const auto& [line, names] : groups_) {
    text += folded(names) + (names.size() == 1 ? one : many) + ": " + line + "\n";
  }
  return text;
}

std::string count_of(std::size_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

}  // namespace beeline::topology
