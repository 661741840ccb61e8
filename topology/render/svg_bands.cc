// SPDX-License-Identifier: Apache-2.0
#include "topology/render/svg_bands.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "topology/render/svg_sizes.h"

namespace beeline::topology {
namespace {

using Branches = std::vector<Branch>;

// Lifecycle: a local variable. Threads: one.
class BandFiller {
 public:
  BandFiller(const DrawnTree& tree, const std::vector<double>& widths, double limit)
      : tree_(tree), widths_(widths), limit_(limit) {}

  std::vector<Branches> fill(NodeIndex row) {
    place(tree_.children[row]);
    return std::move(bands_);
  }

 private:
  void place(const std::vector<NodeIndex>& nodes) {
    for (const NodeIndex node : nodes) {
      const bool is_too_wide = widths_[node] > limit_ && !tree_.children[node].empty();
      const bool is_full = used_ > 0 && used_ + widths_[node] > limit_;
      if (bands_.empty() || (is_full && !is_too_wide)) {
        bands_.emplace_back();
        used_ = 0;
      }
      if (is_too_wide) {
        above_.push_back(node);
        place(tree_.children[node]);
        above_.pop_back();
      } else {
        open_branch().push_back(whole(node));
        used_ += widths_[node] + kGap;
      }
    }
  }

  // The place of the next node in the last band: below its bridges, which are in every band that
  // contains a part of them.
  Branches& open_branch() {
    Branches* branches = &bands_.back();
    for (const NodeIndex node : above_) {
      if (branches->empty() || branches->back().node != node) branches->push_back({.node = node});
      branches = &branches->back().children;
    }
    return *branches;
  }

  Branch whole(NodeIndex node) const {
    Branch branch{.node = node};
    for (const NodeIndex child : tree_.children[node]) branch.children.push_back(whole(child));
    return branch;
  }

  const DrawnTree& tree_;
  const std::vector<double>& widths_;
  double limit_;
  std::vector<Branches> bands_;
  std::vector<NodeIndex> above_;
  double used_ = 0;  // of the last band
};

bool is_device(const Graph& graph, NodeIndex node) { return graph[node].kind == NodeKind::kDevice; }

// The width of each node, including everything below it.
std::vector<double> widths_of(const Graph& graph, const DrawnTree& tree) {
  std::vector<double> widths(graph.size());
  for (NodeIndex i = graph.size(); i-- > 0;) {  // children first
    double inside = -kGap;
    for (const NodeIndex child : tree.children[i]) inside += widths[child] + kGap;
    widths[i] = is_device(graph, i) ? kDevice : std::max(inside, kBarWidth);
  }
  return widths;
}

// The minimum number of bands, each as narrow as possible.
std::vector<Branches> cut(const DrawnTree& tree, const std::vector<double>& widths, NodeIndex row) {
  std::vector<Branches> bands = BandFiller(tree, widths, kMostInRow).fill(row);
  if (bands.size() < 2) return bands;
  const double least = widths[row] / static_cast<double>(bands.size());
  for (double limit = least; limit < kMostInRow; limit += kDevice / 2) {
    std::vector<Branches> even = BandFiller(tree, widths, limit).fill(row);
    if (even.size() <= bands.size()) return even;
  }
  return bands;
}

}  // namespace

std::vector<Band> bands_of(const Graph& graph, const DrawnTree& tree) {
  const std::vector<double> widths = widths_of(graph, tree);
  std::vector<Band> bands;
  for (const NodeIndex row : tree.rows) {
    std::vector<Branches> parts = cut(tree, widths, row);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      bands.push_back(
          {.row = row, .part = part, .parts = parts.size(), .branches = std::move(parts[part])});
    }
  }
  return bands;
}

double width_of(const Graph& graph, const Branch& branch) {
  if (is_device(graph, branch.node)) return kDevice;
  return std::max(width_of(graph, branch.children), kBarWidth);
}

double width_of(const Graph& graph, const std::vector<Branch>& branches) {
  double width = -kGap;
  for (const Branch& branch : branches) width += width_of(graph, branch) + kGap;
  return width;
}

}  // namespace beeline::topology
