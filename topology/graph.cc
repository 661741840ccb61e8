// SPDX-License-Identifier: Apache-2.0
#include "topology/graph.h"

#include <algorithm>
#include <tuple>

#include "common/base/natural_order.h"
#include "topology/graph_build.h"

namespace beeline::topology {
namespace {

// Devices with an address come first, sorted by it; the others are sorted by name.
bool device_less(const Node& a, const Node& b) noexcept {
  const auto place = [](const Node& node) {
    return std::pair(!node.pci.has_value(), node.pci.value_or(PciAddress{}));
  };
  if (place(a) != place(b)) return place(a) < place(b);
  return natural_less(label(a), label(b));
}

std::vector<NodeIndex> devices_in_role(const std::vector<Node>& nodes, DeviceRole role) {
  std::vector<NodeIndex> found;
  for (NodeIndex i = 0; i < nodes.size(); ++i) {
    if (nodes[i].role == role) found.push_back(i);
  }
  std::ranges::stable_sort(
      found, [&nodes](NodeIndex a, NodeIndex b) { return device_less(nodes[a], nodes[b]); });
  return found;
}

BridgePort port_below(const Node& parent) noexcept {
  if (parent.kind != NodeKind::kBridge) return BridgePort::kRoot;
  switch (parent.port) {
    case BridgePort::kUpstream: return BridgePort::kDownstream;
    case BridgePort::kUnknown:
    case BridgePort::kRoot:
    case BridgePort::kDownstream:
    case BridgePort::kSwitch: return BridgePort::kUpstream;
  }
  return BridgePort::kUnknown;
}

}  // namespace

void infer_ports(std::vector<Node>& nodes) {
  for (Node& node : nodes) {
    if (node.kind == NodeKind::kBridge && node.port == BridgePort::kUnknown) {
      node.port = port_below(nodes[node.parent]);
    }
  }
}

Outcome<Graph> Graph::make(GraphParts parts) {
  clean_texts(parts.nodes);
  clean_text(parts.source);
  for (std::string& remark : parts.remarks) clean_text(remark);
  BL_TRY(check_nodes(parts.nodes));
  Graph graph;
  graph.source_ = std::move(parts.source);
  graph.remarks_ = std::move(parts.remarks);
  graph.nccl_version_ = parts.nccl_version;
  graph.nodes_ = in_order(std::move(parts.nodes));
  infer_numa(graph.nodes_, graph.remarks_);
  graph.nodes_ = in_order(std::move(graph.nodes_));
  inherit_cpus(graph.nodes_);
  infer_ports(graph.nodes_);
  graph.gpus_ = devices_in_role(graph.nodes_, DeviceRole::kGpu);
  graph.nics_ = devices_in_role(graph.nodes_, DeviceRole::kRdmaNic);
  return graph;
}

NodeIndex find_os_device(const Graph& graph, OsKind kind, std::string_view name) noexcept {
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    for (const OsDevice& device : graph[i].os_devices) {
      if (device.kind == kind && device.name == name) return i;
    }
  }
  return kNoNode;
}

NodeIndex find_pci(const Graph& graph, const PciAddress& address) noexcept {
  const auto nodes = graph.nodes();
  const auto found = std::ranges::find_if(nodes, [&address](const Node& node) {
    return node.pci == address && node.kind != NodeKind::kHostBridge;
  });
  return found == nodes.end() ? kNoNode : static_cast<NodeIndex>(found - nodes.begin());
}

}  // namespace beeline::topology
