// SPDX-License-Identifier: Apache-2.0
//
// Splits rows that are too wide for a screen into bands, one below another.
#pragma once

#include <vector>

#include "topology/render/svg_rows.h"

namespace beeline::topology {

struct Branch {
  NodeIndex node = kNoNode;
  std::vector<Branch> children = {};
};

// A row, or a part of one.
struct Band {
  NodeIndex row = kNoNode;
  std::size_t part = 0;
  std::size_t parts = 1;
  std::vector<Branch> branches = {};
};

// In the order of the tree's rows. A bridge that is wider than a row is in several bands; any other
// bridge is in one band with everything below it. The bands of a row are about equally wide.
std::vector<Band> bands_of(const Graph& graph, const DrawnTree& tree);

double width_of(const Graph& graph, const Branch& branch);
double width_of(const Graph& graph, const std::vector<Branch>& branches);  // side by side

}  // namespace beeline::topology
