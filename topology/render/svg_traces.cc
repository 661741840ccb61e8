// SPDX-License-Identifier: Apache-2.0
#include "topology/render/svg_traces.h"

#include <algorithm>

namespace beeline::topology {
namespace {

constexpr double kLane = 9;  // distance of two lanes
constexpr double kShaft = 9;
constexpr double kClear = 10;  // between two lines in one lane

void mark_row(const std::vector<Branch>& branches, std::size_t row,
              std::map<NodeIndex, std::size_t>& row_of) {
  for (const Branch& branch : branches) {
    row_of[branch.node] = row;
    mark_row(branch.children, row, row_of);
  }
}

}  // namespace

TraceRouter::TraceRouter(const Picture& picture, const std::vector<Band>& bands,
                         const Assignment& assignment) {
  std::map<NodeIndex, std::size_t> row_of;  // a device stands in one row
  for (std::size_t row = 0; row < bands.size(); ++row) {
    mark_row(bands[row].branches, row, row_of);
    rows_right_ = std::max(rows_right_, picture.rows[row].box.right());
  }
  collect_pins(picture, assignment, row_of);
  for (const Pin& pin : pins_) {
    if (pin.leaves_row()) shafts_.try_emplace(pin.gpu, shafts_.size());
  }
  for (std::size_t row = 0; row < picture.rows.size(); ++row) lanes_.push_back(lanes_of(row));
}

std::vector<double> TraceRouter::rooms() const {
  std::vector<double> rooms;
  for (const Lanes& lanes : lanes_) {
    std::size_t count = 0;
    for (const auto& [gpu, lane] : lanes) count = std::max(count, lane + 1);
    rooms.push_back(static_cast<double>(count) * kLane);
  }
  return rooms;
}

double TraceRouter::room_beside() const { return static_cast<double>(shafts_.size()) * kShaft; }

std::vector<Trace> TraceRouter::traces(const Picture& picture) const {
  const auto bottom = [&picture](std::size_t row) { return picture.rows[row].devices_bottom; };
  const auto lane_y = [&](std::size_t row, std::size_t gpu) {
    return bottom(row) + kLane * static_cast<double>(lanes_[row].at(gpu) + 1);
  };
  std::vector<Trace> traces;
  for (const Pin& pin : pins_) {
    const double gpu_lane = lane_y(pin.gpu_row, pin.gpu);
    const double nic_lane = lane_y(pin.nic_row, pin.gpu);
    Trace& trace = traces.emplace_back();
    trace.gpu = pin.gpu;
    trace.points = {{pin.gpu_x, bottom(pin.gpu_row)}, {pin.gpu_x, gpu_lane}};
    if (pin.leaves_row()) {
      trace.points.push_back({shaft_x(pin.gpu), gpu_lane});
      trace.points.push_back({shaft_x(pin.gpu), nic_lane});
    }
    trace.points.push_back({pin.nic_x, nic_lane});
    trace.points.push_back({pin.nic_x, bottom(pin.nic_row)});
  }
  return traces;
}

// Lines to the same NIC end next to each other.
void TraceRouter::collect_pins(const Picture& picture, const Assignment& assignment,
                               const std::map<NodeIndex, std::size_t>& row_of) {
  std::map<NodeIndex, int> users;
  for (const GpuAssignment& given : assignment.gpus) {
    for (const NodeIndex nic : given.nics) ++users[nic];
  }
  std::map<NodeIndex, int> ends;
  for (std::size_t gpu = 0; gpu < assignment.gpus.size(); ++gpu) {
    const GpuAssignment& given = assignment.gpus[gpu];
    // A virtual function of a drawn physical function has no box.
    const auto gpu_box = picture.boxes.find(given.gpu);
    if (gpu_box == picture.boxes.end()) continue;
    for (const NodeIndex nic : given.nics) {
      const auto box = picture.boxes.find(nic);
      if (box == picture.boxes.end()) continue;
      const double share = static_cast<double>(++ends[nic]) / (users[nic] + 1);
      pins_.push_back({.gpu = gpu,
                       .gpu_x = gpu_box->second.middle(),
                       .nic_x = box->second.x + box->second.width * share,
                       .gpu_row = row_of.at(given.gpu),
                       .nic_row = row_of.at(nic)});
    }
  }
}

// The horizontal extent of each GPU's lane below this row. Short ones come first, since they get
// the lanes next to the boxes.
std::vector<TraceRouter::Span> TraceRouter::spans_of(std::size_t row) const {
  std::map<std::size_t, Span> spans;
  const auto reach = [&spans](std::size_t gpu, double x) {
    Span& span = spans.try_emplace(gpu, Span{.from = x, .to = x, .gpu = gpu}).first->second;
    span.from = std::min(span.from, x);
    span.to = std::max(span.to, x);
  };
  for (const Pin& pin : pins_) {
    if (pin.gpu_row == row) reach(pin.gpu, pin.gpu_x);
    if (pin.nic_row == row) reach(pin.gpu, pin.nic_x);
    if (pin.touches(row) && pin.leaves_row()) reach(pin.gpu, shaft_x(pin.gpu));
  }
  std::vector<Span> sorted;
  sorted.reserve(spans.size());
  for (const auto& [gpu, span] : spans) sorted.push_back(span);
  std::ranges::stable_sort(sorted, {}, [](const Span& span) { return span.to - span.from; });
  return sorted;
}

TraceRouter::Lanes TraceRouter::lanes_of(std::size_t row) const {
  Lanes lane_of_gpu;
  std::vector<std::vector<Span>> taken;  // by lane
  for (const Span& span : spans_of(row)) {
    const auto is_clear = [&span](const Span& other) {
      return span.to + kClear < other.from || other.to + kClear < span.from;
    };
    std::size_t lane = 0;
    while (lane < taken.size() && !std::ranges::all_of(taken[lane], is_clear)) ++lane;
    if (lane == taken.size()) taken.emplace_back();
    taken[lane].push_back(span);
    lane_of_gpu[span.gpu] = lane;
  }
  return lane_of_gpu;
}

double TraceRouter::shaft_x(std::size_t gpu) const {
  return rows_right_ + kShaft * static_cast<double>(shafts_.at(gpu) + 1);
}

}  // namespace beeline::topology
