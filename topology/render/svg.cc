// SPDX-License-Identifier: Apache-2.0
#include "topology/render/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "topology/render/display_names.h"
#include "topology/render/name_list.h"
#include "topology/render/report.h"
#include "topology/render/svg_layout.h"
#include "topology/render/svg_legend.h"
#include "topology/render/svg_sizes.h"
#include "topology/render/svg_text.h"

namespace beeline::topology {
namespace {

constexpr std::string_view kStyle = R"(<style>
text { font-family: "DejaVu Sans", Verdana, sans-serif; font-size: 11px; fill: #1f2933 }
.title { font-size: 16px; font-weight: bold }
.name { font-size: 13px; font-weight: bold; text-anchor: middle }
.small { font-size: 10px; text-anchor: middle; fill: #52606d }
.bar { text-anchor: middle }
.slow { fill: #c81e1e; font-weight: bold }
.far { fill: #b45309 }
</style>
)";
// Colors of GPUs. None is red, since red means a problem.
constexpr std::array<const char*, 8> kColors = {"#1769aa", "#b45309", "#0f7b6c", "#7c3aed",
                                                "#c026d3", "#4d7c0f", "#0e7490", "#334155"};
constexpr double kTitleCharacter = 10;  // width, in bold
constexpr std::size_t kName = 13;       // characters that fit into a device's box: in bold,
constexpr std::size_t kLabel = 17;      // and below it

class SvgPicture {
 public:
  SvgPicture(const Graph& graph, const Assignment& assignment)
      : graph_(graph),
        assignment_(assignment),
        names_(graph),
        picture_(lay_out(graph, assignment)) {
    for (const SpareNic& spare : assignment.spares) spares_.insert(spare.nic);
    for (const LinkState& link : links_in_use(graph)) {
      if (is_slow(link.verdict)) slow_.emplace(link.node, link);
    }
  }

  std::string draw() {
    draw_rows();
    for (const DrawnLink& link : picture_.links) draw_link(link);
    for (const auto& [node, box] : picture_.boxes) {
      graph_[node].kind == NodeKind::kDevice ? draw_device(node, box) : draw_bar(node, box);
    }
    for (const Trace& trace : picture_.traces) draw_trace(trace);
    draw_notes();
    draw_title();
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n{2}<rect width=\"100%\" height=\"100%\" "
        "fill=\"#ffffff\"/>\n{3}</svg>\n",
        picture_.width, picture_.height, kStyle, body_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    // fmt::format is in the library. fmt::format_to would be compiled here once more.
    body_ += fmt::format(format, std::forward<Args>(args)...);
    body_ += '\n';
  }
  void text(double x, double y, const char* style, const std::string& words) {
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>", x, y, style, escaped(words));
  }
  void box(const Box& at, const char* fill, const char* stroke, const char* more = "") {
    add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" "
        "fill=\"{}\" stroke=\"{}\" {}/>",
        at.x, at.y, at.width, at.height, fill, stroke, more);
  }

  void draw_title() {
    const std::string& name = graph_[0].name;
    const std::string& source = graph_.source();
    std::string words = name.empty() ? "PCIe, GPUs and NICs" : name;
    if (!source.empty()) words.append(" - ").append(source);
    std::string alarm;
    double room = picture_.width - 2 * kMargin;
    if (!slow_.empty()) {
      const std::string count = count_of(slow_.size(), "slow link");
      alarm = fmt::format("<tspan dx=\"14\" class=\"slow\">{}</tspan>", count);
      room -= 14 + kTitleCharacter * static_cast<double>(count.size());
    }
    words = shortened(words, static_cast<std::size_t>(room / kTitleCharacter));
    add("<text x=\"24\" y=\"32\" class=\"title\">{}{}</text>", escaped(words), alarm);
  }

  // The box below a slow link is highlighted, too.
  void box_of(NodeIndex node, const Box& at, const char* fill, const char* stroke,
              const char* more = "") {
    if (!slow_.contains(node)) return box(at, fill, stroke, more);
    box(at, "#fde8e8", kSlowColor, fmt::format("stroke-width=\"3\" {}", more).c_str());
  }

  void draw_rows() {
    for (const Row& row : picture_.rows) {
      box(row.box, "#f5f7fa", "#cbd2d9");
      const Node& node = graph_[row.node];
      std::string words = row.node == 0 ? "NUMA node unknown" : label(node);
      if (node.kind == NodeKind::kNumaNode && graph_[node.parent].kind == NodeKind::kPackage) {
        words.insert(0, label(graph_[node.parent]) + ", ");
      }
      if (!node.cpus.empty()) words += ", CPUs " + node.cpus;
      if (row.parts > 1) words += fmt::format(" (part {} of {})", row.part + 1, row.parts);
      text(row.box.x + 14, row.box.y + 19, "", words);
    }
  }

  void draw_bar(NodeIndex node, const Box& at) {
    const bool is_host_bridge = graph_[node].kind == NodeKind::kHostBridge;
    box_of(node, at, is_host_bridge ? "#d9e2ec" : "#fff3c4",
           is_host_bridge ? "#829ab1" : "#cb9a2e");
    std::string words = label(graph_[node]);
    if (!is_host_bridge && graph_[node].pci) words = "switch " + to_string(*graph_[node].pci);
    if (!bars_.insert(node).second) words += " (continued)";
    text(at.middle(), at.y + 17, "bar", words);
  }

  void draw_device(NodeIndex node, const Box& at) {
    const bool is_gpu = graph_[node].role == DeviceRole::kGpu;
    if (spares_.contains(node)) marks_.insert(Mark::kSpare);
    const char* spare = spares_.contains(node) ? "stroke-dasharray=\"4 3\"" : "";
    box_of(node, at, is_gpu ? "#d8f3dc" : "#dbeafe", is_gpu ? "#2d6a4f" : "#1d4ed8", spare);
    text(at.middle(), at.y + 18, "name", shortened(names_[node], kName));
    text(at.middle(), at.y + 34, "small",
         graph_[node].pci ? to_string(*graph_[node].pci) : "no PCI");
    if (!is_gpu) return text(at.middle(), at.y + 49, "small", shortened(speed_of(node), kLabel));
    const std::string nics = nics_of(node);
    const bool is_far = nics.ends_with(to_string(Distance::kSys));
    if (is_far) marks_.insert(Mark::kFar);
    text(at.middle(), at.y + 49, is_far ? "small far" : "small", nics);
  }

  std::string nics_of(NodeIndex gpu) const {
    for (const GpuAssignment& given : assignment_.gpus) {
      if (given.gpu != gpu) continue;
      if (given.nics.empty()) return "no NIC";
      std::string more = given.nics.size() > 1 ? fmt::format(" +{}", given.nics.size() - 1) : "";
      more.append(" ").append(to_string(given.distance));
      return shortened(names_[given.nics.front()], kLabel - more.size()) + more;
    }
    return "";
  }

  std::string speed_of(NodeIndex nic) const {
    double mbps = 0;
    bool is_down = false;
    for (const NicPort& port : graph_[nic].nic_ports) {
      mbps += port.speed_mbps;
      is_down = is_down || port.state == PortState::kDown;
    }
    if (is_down) return graph_[nic].nic_ports.size() == 1 ? "port down" : "a port down";
    if (mbps != 0) return fmt::format("{:g} Gb/s", mbps / 1000);
    return spares_.contains(nic) ? "spare" : "";
  }

  // Writes the known rate and width beside a link; a slow link is highlighted.
  void draw_link(const DrawnLink& link) {
    const LinkState& state = link.state;
    const bool slow = is_slow(state.verdict);
    const bool idle = state.verdict == LinkVerdict::kIdle;
    const bool unknown = state.verdict == LinkVerdict::kUnknown && state.now != PcieLink();
    const char* dashes = idle ? "stroke-dasharray=\"5 3\"" : "";
    if (unknown) dashes = "stroke-dasharray=\"1 3\"";
    if (slow) marks_.insert(Mark::kSlowLink);
    if (idle) marks_.insert(Mark::kIdleLink);
    if (unknown) marks_.insert(Mark::kUnknownLink);
    add("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" "
        "stroke-width=\"{4:.1f}\" {5}/>",
        link.from.x, link.from.y, link.to_y, slow ? kSlowColor : kLinkColor, slow ? 4.0 : 1.5,
        dashes);
    if (state.now == PcieLink()) return;
    const double y = link.to_y - 26;
    text(link.from.x + 5, y, slow ? "slow" : "", to_string(state.now));
    if (slow) text(link.from.x + 5, y + 13, "slow", expected_text(state));
    if (idle) text(link.from.x + 5, y + 13, "", "saving power");
  }

  std::string expected_text(const LinkState& link) const {
    switch (link.verdict) {
      case LinkVerdict::kDegraded: return "of " + to_string(link.possible);
      case LinkVerdict::kNarrowSlot: return fmt::format("of x{}", link.device_max.lanes);
      case LinkVerdict::kBelowPorts: return "for " + speed_of(link.node);
      case LinkVerdict::kUnknown:
      case LinkVerdict::kFull:
      case LinkVerdict::kIdle: break;
    }
    return "";
  }

  void draw_trace(const Trace& trace) {
    marks_.insert(Mark::kUse);
    std::string points;
    for (const Point& point : trace.points)
      points += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
    points.pop_back();
    const char* color = kColors[trace.gpu % kColors.size()];
    add("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2.5\" "
        "stroke-linejoin=\"round\"/>",
        points, color);
    add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>", trace.points.back().x,
        trace.points.back().y, color);
  }

  // Below the rows: the legend, slow links, and remarks.
  void draw_notes() {
    std::vector<std::pair<const char*, std::string>> notes;
    if (picture_.rows.empty()) notes.emplace_back("", "no GPU and no RDMA NIC");
    for (const auto& [node, link] : slow_) {
      notes.emplace_back("slow", names_[node] + ": " + describe(graph_, link));
    }
    const std::string models = models_text(graph_);
    for (std::size_t at = 0, end = 0; at < models.size(); at = end + 1) {
      end = models.find('\n', at);
      notes.emplace_back("", models.substr(at, end - at));
    }
    for (const std::string& remark : graph_.remarks()) notes.emplace_back("", "Note: " + remark);
    picture_.height = std::max(picture_.height, kTitle);
    picture_.width = std::max(picture_.width, kLeastForNotes);
    const Legend legend = legend_of(marks_, picture_.height - 5, picture_.width - kMargin);
    body_ += legend.svg;
    picture_.height += legend.height;
    const double room = (picture_.width - 2 * kMargin) / kCharacter;
    for (const auto& [style, words] : notes) {
      for (const std::string& line : wrapped(words, static_cast<std::size_t>(room))) {
        text(kMargin, picture_.height + 12, style, line);
        picture_.height += kTextLine;
      }
    }
    picture_.height += 12;
  }

  const Graph& graph_;
  const Assignment& assignment_;
  DisplayNames names_;
  Picture picture_;
  std::set<NodeIndex> spares_;
  std::map<NodeIndex, LinkState> slow_;
  std::set<NodeIndex> bars_;  // drawn
  std::set<Mark> marks_;      // that occur
  std::string body_;
};

}  // namespace

std::string to_svg(const Graph& graph, const Assignment& assignment) {
  return SvgPicture(graph, assignment).draw();
}

}  // namespace beeline::topology
