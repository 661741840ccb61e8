// SPDX-License-Identifier: Apache-2.0
//
// See summary.h. A section without content is not there.
#include "tools/topo/summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "topology/render/matrix.h"
#include "topology/render/report.h"

namespace beeline::topo {
namespace {

using topology::Graph;

std::string count_of(std::size_t count, const char* thing) {
  if (count == 0) return fmt::format("no {}", thing);
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

std::string headline(const Graph& graph, std::size_t slow_links) {
  const auto numas =
      std::ranges::count(graph.nodes(), topology::NodeKind::kNumaNode, &topology::Node::kind);
  const std::string& name = graph[0].name;
  std::string line = graph.source();
  if (!name.empty()) line += ", " + name;
  line += fmt::format(
      ": {}, {}, {}", count_of(graph.gpus().size(), "GPU"),
      count_of(graph.nics().size(), "RDMA NIC"),
      numas == 0 ? "NUMA unknown" : count_of(static_cast<std::size_t>(numas), "NUMA node"));
  if (slow_links > 0) line += "; " + count_of(slow_links, "slow link") + ", see below";
  return line + "\n";
}

// Indented, below its title.
std::string section(const char* title, const std::string& text) {
  if (text.empty()) return "";
  std::string all = fmt::format("\n{}\n", title);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) all += "  " + text.substr(at, end - at);
    all += '\n';
    at = end + 1;
  }
  return all;
}

// One line where all lines would say the same.
std::string uses(const Graph& graph, const topology::Assignment& assignment) {
  if (graph.gpus().empty() && graph.nics().empty()) return "";
  if (graph.gpus().empty()) return "there is no GPU; --gpu ADDRESS takes a PCI device for one\n";
  if (graph.nics().empty()) return "there is no RDMA NIC: every GPU goes without\n";
  return topology::assignment_text(graph, assignment);
}

std::string remarks(const Graph& graph) {
  std::string text;
  for (const std::string& remark : graph.remarks()) text += remark + "\n";
  return text;
}

}  // namespace

std::string summary(const Graph& graph, const topology::Assignment& assignment) {
  const std::string slow = topology::slow_links_text(graph);
  const std::string devices = topology::devices_text(graph);
  return headline(graph, lines_of(slow)) + section("Devices", devices) +
         section("Distances", devices.empty() ? "" : topology::matrix_text(graph)) +
         section("Who uses what (then: who stands by, the best first)", uses(graph, assignment)) +
         section("Slow links", slow) + section("What could not be seen", remarks(graph));
}

}  // namespace beeline::topo
