// SPDX-License-Identifier: Apache-2.0
//
// A row is laid out from its widths upwards and its depth downwards; devices stand side by side at
// the bottom, so that what joins them has the room below for itself.
#include "topology/render/svg_layout.h"

#include <algorithm>

#include "topology/render/svg_traces.h"

namespace beeline::topology {
namespace {

constexpr double kMargin = 24;
constexpr double kTitle = 52;     // above the first row
constexpr double kRowTitle = 30;  // within each row
constexpr double kInset = 14;
constexpr double kGap = 12;
constexpr double kDevice = 112;  // width
constexpr double kDeviceHeight = 58;
constexpr double kBarHeight = 26;
constexpr double kBarWidth = 168;  // at least: its label has to fit
constexpr double kLink = 46;       // length

class RowLayout {
 public:
  RowLayout(Picture& picture, const Graph& graph, const DrawnTree& tree)
      : picture_(picture), graph_(graph), tree_(tree) {}

  // The row's box, with everything in it and that much room below its devices.
  void place(Row& row, double top, double room) {
    double x = kMargin + kInset;
    const double bars_y = top + kRowTitle;
    devices_y_ = bars_y + depth_below(row.node) * (kBarHeight + kLink);
    for (const NodeIndex child : tree_.children[row.node]) {
      put(child, x, bars_y);
      x += width_of(child) + kGap;
    }
    row.devices_bottom = devices_y_ + kDeviceHeight;
    row.box = {.x = kMargin,
               .y = top,
               .width = x - kGap + kInset - kMargin,
               .height = row.devices_bottom + room + kInset - top};
  }

 private:
  bool is_device(NodeIndex node) const { return graph_[node].kind == NodeKind::kDevice; }

  double width_of(NodeIndex node) const {
    if (is_device(node)) return kDevice;
    return std::max(children_width(node), kBarWidth);
  }
  double children_width(NodeIndex node) const {
    double width = -kGap;
    for (const NodeIndex child : tree_.children[node]) width += width_of(child) + kGap;
    return width;
  }

  // Bars one below another.
  int depth_below(NodeIndex node) const {
    int depth = 0;
    for (const NodeIndex child : tree_.children[node]) {
      if (!is_device(child)) depth = std::max(depth, 1 + depth_below(child));
    }
    return depth;
  }

  void put(NodeIndex node, double x, double y) {
    const double width = width_of(node);
    if (is_device(node)) {
      picture_.boxes[node] = {.x = x, .y = devices_y_, .width = width, .height = kDeviceHeight};
      return;
    }
    picture_.boxes[node] = {.x = x, .y = y, .width = width, .height = kBarHeight};
    double child_x = x + (width - children_width(node)) / 2;
    for (const NodeIndex child : tree_.children[node]) {
      put(child, child_x, y + kBarHeight + kLink);
      const Box& box = picture_.boxes[child];
      picture_.links.push_back({.state = link_above(graph_, child),
                                .from = {.x = box.middle(), .y = y + kBarHeight},
                                .to_y = box.y});
      child_x += width_of(child) + kGap;
    }
  }

  Picture& picture_;
  const Graph& graph_;
  const DrawnTree& tree_;
  double devices_y_ = 0;
};

void place_rows(Picture& picture, const Graph& graph, const DrawnTree& tree,
                const std::vector<double>& rooms) {
  picture.links.clear();
  RowLayout layout(picture, graph, tree);
  double top = kTitle;
  double right = 0;
  for (std::size_t i = 0; i < picture.rows.size(); ++i) {
    Row& row = picture.rows[i];
    layout.place(row, top, rooms[i]);
    top = row.box.bottom() + kGap;
    right = std::max(right, row.box.right());
  }
  for (Row& row : picture.rows) row.box.width = right - kMargin;
  picture.width = right + kMargin;
  picture.height = top;
}

}  // namespace

Picture lay_out(const Graph& graph, const Assignment& assignment) {
  const DrawnTree tree = drawn_tree(graph);
  Picture picture;
  for (const NodeIndex row : tree.rows) picture.rows.push_back({.node = row});
  // Once to know what is beside what, which tells how much room the lines need, and once for good.
  place_rows(picture, graph, tree, std::vector<double>(tree.rows.size()));
  const TraceRouter router(picture, graph, assignment, tree);
  place_rows(picture, graph, tree, router.rooms());
  picture.traces = router.traces(picture);
  picture.width += router.room_beside();
  return picture;
}

}  // namespace beeline::topology
