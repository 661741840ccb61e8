// SPDX-License-Identifier: Apache-2.0
//
// Finds the name that is most similar to a misspelled one.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace beeline {

// The edit distance: how many insertions, deletions, replacements and swaps of neighbors.
std::size_t edits_between(std::string_view a, std::string_view b);

// The one of `known` with the fewest edits from `name`, the first of several, or empty if none is
// similar.
std::string_view nearest(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace beeline
