// SPDX-License-Identifier: Apache-2.0
//
// Computes the edit distance with the usual table, of which three rows are kept.
#include "plugin/config/nearest.h"

#include <algorithm>
#include <numeric>

namespace beeline {

std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<size_t> two_up(b.size() + 1);
  std::vector<size_t> above(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_up[j - 2] + 1);
      }
    }
    std::swap(two_up, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string_view nearest(std::string_view name, const std::vector<std::string_view>& known) {
  std::string_view best;
  // At most a third of the name may differ, or two characters of a short one.
  size_t fewest = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const size_t edits = edits_between(name, candidate);
    if (edits < fewest && edits < candidate.size()) {
      best = candidate;
      fewest = edits;
    }
  }
  return best;
}

}  // namespace beeline
