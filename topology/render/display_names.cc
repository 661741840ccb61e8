// SPDX-License-Identifier: Apache-2.0
//
// Numbering.
#include "topology/render/display_names.h"

namespace beeline::topology {

DisplayNames::DisplayNames(const Graph& graph) {
  names_.reserve(graph.size());
  for (const Node& node : graph.nodes()) names_.push_back(label(node));
  for (std::size_t i = 0; i < graph.gpus().size(); ++i) {
    names_[graph.gpus()[i]] = "GPU" + std::to_string(i);
  }
  for (std::size_t i = 0; i < graph.nics().size(); ++i) {
    const Node& nic = graph[graph.nics()[i]];
    if (os_name(nic, OsKind::kRdma).empty()) names_[graph.nics()[i]] = "NIC" + std::to_string(i);
  }
}

std::string DisplayNames::list(const std::vector<NodeIndex>& nodes) const {
  std::string text;
  for (const NodeIndex node : nodes) text += (text.empty() ? "" : ", ") + names_[node];
  return text;
}

}  // namespace beeline::topology
