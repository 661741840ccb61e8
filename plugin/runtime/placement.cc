// SPDX-License-Identifier: Apache-2.0
//
// Topology's answers in words that say what to do.
#include "plugin/runtime/placement.h"

#include <algorithm>

#include "common/base/log.h"
#include "topology/distance.h"
#include "topology/findings.h"
#include "topology/read/live.h"

namespace beeline {

using topology::Graph;
using topology::NodeIndex;

std::optional<Graph> read_machine(const std::string& sysfs_root) {
  auto graph = Graph::make(topology::read_live(sysfs_root));
  if (!graph) {
    BL_INFO(kLogInit | kLogGraph, "this machine's topology is not understood: %s",
            graph.error().text.c_str());
    return std::nullopt;
  }
  for (const std::string& remark : graph->remarks()) {
    BL_INFO(kLogInit | kLogGraph, "topology: %s", remark.c_str());
  }
  return *std::move(graph);
}

std::vector<NodeIndex> nodes_of(const Graph& graph, std::span<const Device> devices) {
  std::vector<NodeIndex> nodes;
  for (const Device& device : devices) {
    const NodeIndex node = find_os_device(graph, topology::OsKind::kRdma, device.ibdev);
    if (node != topology::kNoNode && std::ranges::find(nodes, node) == nodes.end()) {
      nodes.push_back(node);
    }
  }
  return nodes;
}

std::string cpus_near(const Graph& graph, const std::vector<NodeIndex>& nics) {
  std::string all;
  for (const NodeIndex nic : nics) {
    const std::string& cpus = graph[nic].cpus;
    if (!cpus.empty()) all += (all.empty() ? "" : ",") + cpus;
  }
  return all;
}

std::vector<std::string> slow_links(const Graph& graph, const std::vector<NodeIndex>& nics) {
  std::vector<std::string> lines;
  for (const topology::Finding& finding : topology::findings(graph, {.nics = nics})) {
    if (finding.kind != topology::FindingKind::kSlowLink) continue;
    lines.push_back("the PCIe link of " + label(graph[finding.device]) +
                    " is slow: " + describe(finding));
  }
  return lines;
}

std::optional<std::string> hidden_tree_advice(const Graph& graph,
                                              const std::vector<NodeIndex>& nics) {
  if (graph.gpus().empty() || nics.empty() || !hides_its_tree(graph)) return std::nullopt;
  return "this machine hides its PCI tree, as virtual machines do, so NCCL cannot tell which NIC "
         "is near which GPU: give it the provider's description (NCCL_TOPO_FILE)";
}

}  // namespace beeline
