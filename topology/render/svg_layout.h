// SPDX-License-Identifier: Apache-2.0
//
// The position of each element of the picture, in pixels.
#pragma once

#include <map>
#include <vector>

#include "topology/assignment.h"
#include "topology/link_state.h"
#include "topology/render/svg_bands.h"

namespace beeline::topology {

struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;

  double middle() const noexcept { return x + width / 2; }
  double bottom() const noexcept { return y + height; }
  double right() const noexcept { return x + width; }
};

// A vertical line from a bar to a box below it.
struct DrawnLink {
  LinkState state = {};
  Point from = {};
  double to_y = 0;
};

// A line from a GPU to a NIC that it uses.
struct Trace {
  std::size_t gpu = 0;  // its place in Graph::gpus(), which determines its color
  std::vector<Point> points = {};
};

struct Row {
  NodeIndex node = kNoNode;  // a NUMA node, a package or the machine
  std::size_t part = 0;      // of the node's rows
  std::size_t parts = 1;
  Box box = {};
  double devices_bottom = 0;  // of the boxes of its devices: lines to NICs begin and end here
};

struct Picture {
  std::vector<Row> rows = {};
  // Boxes of bars and devices. A bar that is wider than a row has a box for each of its parts.
  std::multimap<NodeIndex, Box> boxes = {};
  std::vector<DrawnLink> links = {};
  std::vector<Trace> traces = {};
  double width = 0;
  double height = 0;
};

Picture lay_out(const Graph& graph, const Assignment& assignment);

}  // namespace beeline::topology
