// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/placement.h"

#include <algorithm>

#include "topology/distance.h"
#include "topology/findings.h"
#include "topology/read/live.h"

namespace beeline {

using topology::Graph;
using topology::NodeIndex;

std::optional<Graph> read_machine(const std::string& sysfs_root, std::vector<Finding>& findings) {
  auto graph = Graph::make(topology::read_live(sysfs_root));
  if (!graph) {
    findings.push_back(
        {.id = "topology-not-understood",
         .fact = "this machine's topology is not understood: " + graph.error().text});
    return std::nullopt;
  }
  for (const std::string& remark : graph->remarks()) {
    findings.push_back({.id = "topology-remark", .fact = "topology: " + remark});
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

std::vector<Finding> slow_links(const Graph& graph, const std::vector<NodeIndex>& nics) {
  std::vector<Finding> found;
  for (const topology::Finding& link : topology::findings(graph, {.nics = nics})) {
    if (link.kind != topology::FindingKind::kSlowLink) continue;
    const std::string name = label(graph[link.device]);
    found.push_back({.id = "slow-link",
                     .severity = link.severity,
                     .subject = name,
                     .fact = "the PCIe link of " + name + " is slow: " + link.cause,
                     .fix = link.fix});
  }
  return found;
}

std::optional<Finding> hidden_tree(const Graph& graph, const std::vector<NodeIndex>& nics) {
  if (graph.gpus().empty() || nics.empty() || !has_hidden_tree(graph)) return std::nullopt;
  return Finding{.id = "hidden-tree",
                 .fact = "this machine hides its PCI tree, as virtual machines do",
                 .why = "NCCL cannot tell which NIC is near which GPU",
                 .fix = "give NCCL the provider's description (NCCL_TOPO_FILE)"};
}

}  // namespace beeline
