// SPDX-License-Identifier: Apache-2.0
//
// A section without content is omitted.
#include "tools/topo/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tools/cli/text_width.h"
#include "topology/render/assignment_text.h"
#include "topology/render/matrix.h"
#include "topology/render/name_list.h"
#include "topology/render/report.h"
#include "topology/render/utf8.h"
#include "topology/render/verdict.h"

namespace beeline::topo {
namespace {

using topology::Graph;

std::string count_or_none(std::size_t count, const char* thing) {
  return count == 0 ? fmt::format("no {}", thing) : topology::count_of(count, thing);
}

std::string shown_lines(std::string_view text, const char* indent) {
  std::string all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) all += indent + topology::printable(text.substr(0, end));
    all += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

// Indented, below its title.
std::string section(std::string_view title, std::string_view text, const tools::TextStyle& style) {
  return text.empty()
             ? ""
             : fmt::format("\n{}\n{}", title, tools::fitted(shown_lines(text, "  "), style.width));
}

// What remains of a line in a section.
std::size_t width_of_section(const tools::TextStyle& style) { return style.width - 2; }

constexpr const char* kPaste =
    "For these NICs alone, in any shell (zsh expands =NAME without quotes):\n";

// The line to paste is not broken.
std::string uses(const Graph& graph, const topology::Assignment& assignment,
                 const tools::TextStyle& style) {
  const std::string to_paste = topology::nccl_ib_hca(graph, assignment);
  const std::string text = topology::assignment_text(graph, assignment, width_of_section(style)) +
                           topology::models_text(graph) + (to_paste.empty() ? "" : kPaste);
  return section("Which NIC for which GPU", text, style) +
         (to_paste.empty() ? "" : "  " + to_paste + "\n");
}

std::string remarks(const Graph& graph) {
  std::string text;
  for (const std::string& remark : graph.remarks()) text += remark + "\n";
  return text;
}

}  // namespace

std::string shown(std::string_view lines) { return shown_lines(lines, ""); }

std::string headline(const Graph& graph) {
  const auto numas =
      std::ranges::count(graph.nodes(), topology::NodeKind::kNumaNode, &topology::Node::kind);
  const std::string& name = graph[0].name;
  return topology::printable(fmt::format(
      "{}{}{}: {}, {}, {}", graph.source(), name.empty() ? "" : ", ", name,
      count_or_none(graph.gpus().size(), "GPU"), count_or_none(graph.nics().size(), "RDMA NIC"),
      numas == 0 ? "NUMA unknown"
                 : topology::count_of(static_cast<std::size_t>(numas), "NUMA node")));
}

std::string summary(const Graph& graph, const topology::Assignment& assignment,
                    const tools::TextStyle& style) {
  const bool has_both = !graph.gpus().empty() && !graph.nics().empty();
  const std::string problems = tools::colored("Problems", tools::Color::kRed, style.in_color);
  return tools::fitted(headline(graph) + "\n" + topology::verdict_text(graph, assignment) + "\n",
                       style.width) +
         (has_both ? uses(graph, assignment, style)
                   : section("NICs", topology::nics_text(graph, width_of_section(style)), style)) +
         section(problems, findings_text(graph, topology::Severity::kWarning), style) +
         section("Notes", findings_text(graph, topology::Severity::kNote), style) +
         section("Not visible", remarks(graph), style);
}

std::string details(const Graph& graph, const topology::Assignment& assignment,
                    const tools::TextStyle& style) {
  const std::string devices = topology::devices_text(graph);
  if (devices.empty()) return "";
  return section("Standby NICs, the best first", topology::standby_text(graph, assignment), style) +
         section("Devices", devices, style) +
         section("Distances", topology::matrix_text(graph, width_of_section(style)), style);
}

}  // namespace beeline::topo
