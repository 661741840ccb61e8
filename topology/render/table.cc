// SPDX-License-Identifier: Apache-2.0
#include "topology/render/table.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "topology/render/utf8.h"

namespace beeline::topology {
namespace {

constexpr std::size_t kColumnGap = 2;   // between columns
constexpr std::size_t kShortCell = 12;  // such cells are not broken

using Widths = std::vector<std::size_t>;

std::size_t end_of_word(std::string_view text, std::size_t from) {
  return std::min(text.find(' ', from), text.size());
}

std::size_t longest_word(std::string_view text) {
  std::size_t longest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_word(text, at);
    longest = std::max(longest, count_characters(text.substr(at, end - at)));
    at = end + 1;
  }
  return longest;
}

std::vector<std::string> lines_of(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_word(text, at);
    const std::string word(text.substr(at, end - at));
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (count_characters(line) + 1 + count_characters(word) <= width) {
      line += " " + word;
    } else {
      lines.push_back(word);
    }
    at = end + 1;
  }
  return lines;
}

// The greatest of each column.
template <class Measure>
Widths widths_of(const std::vector<Cells>& rows, Measure&& measure) {
  Widths widths(rows.empty() ? 0 : rows.front().size());
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], measure(row[i]));
  }
  return widths;
}

std::size_t width_of(const Widths& columns) {
  const std::size_t all = std::accumulate(columns.begin(), columns.end(), std::size_t{0});
  return columns.empty() ? 0 : all + kColumnGap * (columns.size() - 1);
}

// Takes from the widest column that can be narrower, until the table fits or none can.
Widths narrowed(Widths widths, const Widths& least, std::size_t width) {
  while (width_of(widths) > width) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] <= least[i]) continue;
      if (widest == widths.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == widths.size()) break;
    --widths[widest];
  }
  return widths;
}

std::string text_of(const std::vector<Cells>& rows, const Widths& widths) {
  std::string text;
  for (const Cells& row : rows) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool fits = count_characters(row[i]) <= widths[i];
      cells.push_back(fits ? std::vector{row[i]} : lines_of(row[i], widths[i]));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t l = 0; l < height; ++l) {
      std::string line;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string cell = l < cells[i].size() ? cells[i][l] : "";
        const std::size_t length = count_characters(cell);
        line.append(cell).append(std::max(widths[i], length) - length + kColumnGap, ' ');
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  }
  return text;
}

// How many columns, from `first` on, fit beside the first one. At least one.
std::size_t columns_beside(const Widths& widths, std::size_t first, std::size_t width) {
  std::size_t used = widths[0];
  std::size_t count = 0;
  while (first + count < widths.size() && used + kColumnGap + widths[first + count] <= width) {
    used += kColumnGap + widths[first + count++];
  }
  return std::max<std::size_t>(count, 1);
}

template <class Item>
std::vector<Item> part_of(const std::vector<Item>& row, std::size_t first, std::size_t count) {
  std::vector<Item> part = {row[0]};
  const auto begin = row.begin() + static_cast<std::ptrdiff_t>(first);
  part.insert(part.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
  return part;
}

}  // namespace

std::string aligned(const std::vector<Cells>& rows, std::size_t width) {
  Widths widths = widths_of(rows, count_characters);
  if (width_of(widths) <= width) return text_of(rows, widths);
  Widths least = widths_of(rows, longest_word);
  for (std::size_t i = 0; i < least.size(); ++i) {
    least[i] = std::max(least[i], std::min(widths[i], kShortCell));
  }
  const Widths narrow = narrowed(widths, least, width);
  if (width_of(narrow) <= width || widths.size() < 3) return text_of(rows, narrow);
  const std::size_t used = least[0] + kColumnGap;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::size_t most = i == 0 ? 0 : width - std::min(width, used);
    widths[i] = std::min(widths[i], std::max(least[i], most));
  }
  std::string text;
  for (std::size_t first = 1; first < widths.size();) {
    const std::size_t count = columns_beside(widths, first, width);
    std::vector<Cells> part;
    part.reserve(rows.size());
    for (const Cells& row : rows) part.push_back(part_of(row, first, count));
    text += (text.empty() ? "" : "\n") + text_of(part, part_of(widths, first, count));
    first += count;
  }
  return text;
}

}  // namespace beeline::topology
