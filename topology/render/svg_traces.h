// SPDX-License-Identifier: Apache-2.0
//
// The lines from GPUs to their NICs in the picture. Each GPU has a horizontal lane below every row
// in which it has an end of a line. If its NICs are in another row, it also has a vertical shaft to
// the right of all rows. Lines that would touch are in different lanes.
#pragma once

#include <map>
#include <vector>

#include "topology/render/svg_layout.h"

namespace beeline::topology {

class TraceRouter {
 public:
  // Uses the horizontal positions in the picture; heights may still change.
  TraceRouter(const Picture& picture, const std::vector<Band>& bands, const Assignment& assignment);

  std::vector<double> rooms() const;  // by row: height of the lanes below its devices
  double room_beside() const;         // width of the shafts

  std::vector<Trace> traces(const Picture& picture) const;

 private:
  struct Pin {  // one GPU and one of its NICs
    std::size_t gpu = 0;
    double gpu_x = 0;
    double nic_x = 0;
    std::size_t gpu_row = 0;
    std::size_t nic_row = 0;

    bool leaves_row() const noexcept { return gpu_row != nic_row; }
    bool touches(std::size_t row) const noexcept { return gpu_row == row || nic_row == row; }
  };
  struct Span {  // of a GPU's lane
    double from = 0;
    double to = 0;
    std::size_t gpu = 0;
  };
  using Lanes = std::map<std::size_t, std::size_t>;  // by GPU

  void collect_pins(const Picture& picture, const Assignment& assignment,
                    const std::map<NodeIndex, std::size_t>& row_of);
  std::vector<Span> spans_of(std::size_t row) const;
  Lanes lanes_of(std::size_t row) const;
  double shaft_x(std::size_t gpu) const;

  std::vector<Pin> pins_;
  std::map<std::size_t, std::size_t> shafts_;  // by GPU
  std::vector<Lanes> lanes_;                   // by row
  double rows_right_ = 0;
};

}  // namespace beeline::topology
