// SPDX-License-Identifier: Apache-2.0
#include "softnic/spec/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>

namespace softnic {
namespace {

struct Range {
  std::string before;
  std::string after;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::size_t width = 0;  // minimum number of digits: "08" keeps its leading zero
};

std::optional<std::uint32_t> parse_bound(const std::string& text) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || value > 99'999) return std::nullopt;
  return value;
}

std::optional<Range> parse_range(const std::string& pattern) {
  const std::size_t open = pattern.find('[');
  const std::size_t close = pattern.find(']');
  const std::size_t dash = pattern.find('-', open);
  if (open == std::string::npos || dash == std::string::npos || close == std::string::npos ||
      close < dash || pattern.find_first_of("[]", close + 1) != std::string::npos)
    return std::nullopt;
  const std::string low = pattern.substr(open + 1, dash - open - 1);
  const std::optional<std::uint32_t> first = parse_bound(low);
  const std::optional<std::uint32_t> last = parse_bound(pattern.substr(dash + 1, close - dash - 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return Range{pattern.substr(0, open), pattern.substr(close + 1), *first, *last,
               low.front() == '0' ? low.size() : 0};
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t swap_cost = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, swap_cost});
    }
  }
  return row[b.size()];
}

}  // namespace

bool is_plain_name(const std::string& name, std::size_t max_len) {
  if (name.empty() || name.size() > max_len || name == "." || name == "..") return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

beeline::Outcome<std::vector<std::string>> expand_range(const std::string& pattern,
                                                        std::size_t most) {
  if (pattern.find_first_of("[]") == std::string::npos) return std::vector{pattern};
  const std::optional<Range> range = parse_range(pattern);
  if (!range)
    return beeline::fail(
        fmt::format("\"{}\" is not a range: write for example name[0-7], lowest first", pattern));
  const std::size_t count = range->last - range->first + 1;
  if (count > most)
    return beeline::fail(
        fmt::format("\"{}\" gives {} names; at most {} are allowed", pattern, count, most));
  std::vector<std::string> names;
  for (std::uint32_t number = range->first; number <= range->last; ++number)
    names.push_back(fmt::format("{}{:0{}}{}", range->before, number, range->width, range->after));
  return names;
}

std::string nearest_name(const std::string& name, std::span<const std::string> known) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    // A name that is cut short is a likely mistake, however many letters are missing.
    const bool is_start = name.size() >= 3 && candidate.starts_with(name);
    const std::size_t distance = is_start ? 1 : edit_distance(name, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string list_text(std::span<const std::string> names) {
  constexpr std::size_t kMost = 28;
  if (names.size() < 2) return names.empty() ? "none" : names.front();
  if (names.size() > kMost)
    return fmt::format("{} and {} more", fmt::join(names.first(kMost), ", "), names.size() - kMost);
  return fmt::format("{} and {}", fmt::join(names.first(names.size() - 1), ", "), names.back());
}

}  // namespace softnic
