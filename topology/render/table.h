// SPDX-License-Identifier: Apache-2.0
//
// Aligns the columns of a table.
#pragma once

#include <string>
#include <vector>

namespace beeline::topology {

using Cells = std::vector<std::string>;

// A line for each row, the columns two spaces apart. Every row has as many cells as the first.
std::string aligned(const std::vector<Cells>& rows);

}  // namespace beeline::topology
