// SPDX-License-Identifier: Apache-2.0
//
// Aligns the columns of a table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace beeline::topology {

using Cells = std::vector<std::string>;

inline constexpr std::size_t kAnyWidth = std::string::npos;

// A line for each row, the columns two spaces apart. Every row has as many cells as the first. If
// that is wider than `width`, long cells are broken at blanks. If that does not help, the columns
// are divided among several tables below each other, all of which begin with the first column.
std::string aligned(const std::vector<Cells>& rows, std::size_t width = kAnyWidth);

}  // namespace beeline::topology
