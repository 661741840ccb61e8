// SPDX-License-Identifier: Apache-2.0
//
// Each row is laid out with its devices side by side at the bottom, so that the lines between GPUs
// and NICs have the space below them.
#include "topology/render/svg_layout.h"

#include <algorithm>

#include "topology/render/svg_sizes.h"
#include "topology/render/svg_traces.h"

namespace beeline::topology {
namespace {

class RowLayout {
 public:
  RowLayout(Picture& picture, const Graph& graph) : picture_(picture), graph_(graph) {}

  // Places the row's box and everything in it, with this space below its devices.
  void place(Row& row, const Band& band, double top, double room) {
    double x = kMargin + kInset;
    const double bars_y = top + kRowTitle;
    devices_y_ = bars_y + depth_of(band.branches) * (kBarHeight + kLink);
    for (const Branch& branch : band.branches) {
      put(branch, x, bars_y);
      x += width_of(graph_, branch) + kGap;
    }
    row.devices_bottom = devices_y_ + kDeviceHeight;
    row.box = {.x = kMargin,
               .y = top,
               .width = x - kGap + kInset - kMargin,
               .height = row.devices_bottom + room + kInset - top};
  }

 private:
  bool is_device(NodeIndex node) const { return graph_[node].kind == NodeKind::kDevice; }

  // The number of bars one below another.
  int depth_of(const std::vector<Branch>& branches) const {
    int depth = 0;
    for (const Branch& branch : branches) {
      if (!is_device(branch.node)) depth = std::max(depth, 1 + depth_of(branch.children));
    }
    return depth;
  }

  Box put(const Branch& branch, double x, double y) {
    const double width = width_of(graph_, branch);
    const bool is_bar = !is_device(branch.node);
    const Box box{.x = x,
                  .y = is_bar ? y : devices_y_,
                  .width = width,
                  .height = is_bar ? kBarHeight : kDeviceHeight};
    picture_.boxes.emplace(branch.node, box);
    double child_x = x + (width - width_of(graph_, branch.children)) / 2;
    for (const Branch& child : branch.children) {
      const Box below = put(child, child_x, y + kBarHeight + kLink);
      picture_.links.push_back({.state = link_above(graph_, child.node),
                                .from = {.x = below.middle(), .y = y + kBarHeight},
                                .to_y = below.y});
      child_x += below.width + kGap;
    }
    return box;
  }

  Picture& picture_;
  const Graph& graph_;
  double devices_y_ = 0;
};

void place_rows(Picture& picture, const Graph& graph, const std::vector<Band>& bands,
                const std::vector<double>& rooms) {
  picture.links.clear();
  picture.boxes.clear();
  RowLayout layout(picture, graph);
  double top = kTitle;
  double right = 0;
  for (std::size_t i = 0; i < picture.rows.size(); ++i) {
    Row& row = picture.rows[i];
    layout.place(row, bands[i], top, rooms[i]);
    top = row.box.bottom() + kGap;
    right = std::max(right, row.box.right());
  }
  for (Row& row : picture.rows) row.box.width = right - kMargin;
  picture.width = right + kMargin;
  picture.height = top;
}

}  // namespace

Picture lay_out(const Graph& graph, const Assignment& assignment) {
  const std::vector<Band> bands = bands_of(graph, drawn_tree(graph));
  Picture picture;
  for (const Band& band : bands) {
    picture.rows.push_back({.node = band.row, .part = band.part, .parts = band.parts});
  }
  // The first pass gives the horizontal positions, from which the space for the lines follows. The
  // second pass gives the final positions.
  place_rows(picture, graph, bands, std::vector<double>(bands.size()));
  const TraceRouter router(picture, bands, assignment);
  place_rows(picture, graph, bands, router.rooms());
  picture.traces = router.traces(picture);
  picture.width += router.room_beside();
  return picture;
}

}  // namespace beeline::topology
