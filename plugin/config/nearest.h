// SPDX-License-Identifier: Apache-2.0
//
// What somebody meant who mistyped a name.
#pragma once

#include <string_view>
#include <vector>

namespace beeline {

// The one of `known` that takes the fewest edits (a letter more, less or other, or two neighbours
// swapped), or empty when even that is far from `name`.
std::string_view nearest(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace beeline
