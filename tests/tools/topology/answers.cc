// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/topology/answers.h"

namespace beeline::topology {
namespace {

char letter_of(Distance distance) {
  switch (distance) {
    case Distance::kLoc: return 'X';
    case Distance::kPix: return 'P';
    case Distance::kPxb: return 'B';
    case Distance::kPhb: return 'H';
    case Distance::kNode: return 'N';
    case Distance::kSys: return 'S';
  }
  return '?';
}

}  // namespace

std::string labels_of(const Graph& graph, const std::vector<NodeIndex>& nodes) {
  std::string text;
  for (const NodeIndex node : nodes) text += (text.empty() ? "" : " ") + label(graph[node]);
  return text;
}

Lines distances_of(const Graph& graph) {
  const Distances places(graph);
  Lines lines;
  for (const NodeIndex gpu : graph.gpus()) {
    std::string& line = lines.emplace_back();
    for (const NodeIndex other : graph.gpus()) line += letter_of(places.between(gpu, other));
    line += ' ';
    for (const NodeIndex nic : graph.nics()) line += letter_of(places.between(gpu, nic));
  }
  return lines;
}

Lines nics_of(const Graph& graph, const AssignOptions& options) {
  Lines lines;
  for (const GpuAssignment& given : assign(graph, options).gpus) {
    lines.push_back(to_string(given.distance) + (" " + labels_of(graph, given.nics)));
  }
  return lines;
}

Lines spares_of(const Graph& graph) {
  Lines lines;
  for (const SpareNic& spare : assign(graph).spares) {
    lines.push_back(label(graph[spare.nic]) + ": " + spare.reason);
  }
  return lines;
}

}  // namespace beeline::topology
