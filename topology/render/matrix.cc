// SPDX-License-Identifier: Apache-2.0
//
// Columns as wide as what is in them.
#include "topology/render/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "topology/distance.h"
#include "topology/render/display_names.h"

namespace beeline::topology {
namespace {

using Cells = std::vector<std::string>;

std::string aligned(const std::vector<Cells>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Cells& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line.append(row[i]).append(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string legend() {
  std::string text = "\n  X     the same device\n";
  for (const Distance distance :
       {Distance::kPix, Distance::kPxb, Distance::kPhb, Distance::kNode, Distance::kSys}) {
    text += fmt::format("  {:<4}  {}\n", to_string(distance), meaning(distance));
  }
  return text;
}

std::string or_unknown(const std::string& text) { return text.empty() ? "?" : text; }

}  // namespace

std::string matrix_text(const Graph& graph) {
  std::vector<NodeIndex> devices(graph.gpus().begin(), graph.gpus().end());
  devices.insert(devices.end(), graph.nics().begin(), graph.nics().end());
  if (devices.empty()) return "no GPU and no RDMA NIC\n";

  const DisplayNames names(graph);
  const Places places(graph);
  std::vector<Cells> rows(1);
  rows[0].emplace_back();
  for (const NodeIndex device : devices) rows[0].push_back(names[device]);
  rows[0].insert(rows[0].end(), {"NUMA", "CPUs"});
  for (const NodeIndex device : devices) {
    Cells& row = rows.emplace_back();
    row.push_back(names[device]);
    for (const NodeIndex other : devices) {
      row.emplace_back(device == other ? "X" : to_string(places.between(device, other)));
    }
    const Node& node = graph[device];
    row.push_back(node.numa < 0 ? "?" : std::to_string(node.numa));
    row.push_back(or_unknown(node.cpus));
  }
  return aligned(rows) + legend();
}

}  // namespace beeline::topology
