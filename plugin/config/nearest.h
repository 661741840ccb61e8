// SPDX-License-Identifier: Apache-2.0
//
// Finds the name that is most similar to a misspelled one.
#pragma once

#include <string_view>
#include <vector>

namespace beeline {

// The one of `known` with the smallest edit distance to `name` (insertions, deletions,
// replacements, and swaps of neighbors), or empty if none is similar.
std::string_view nearest(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace beeline
