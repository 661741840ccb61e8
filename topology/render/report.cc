// SPDX-License-Identifier: Apache-2.0
#include "topology/render/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "topology/render/display_names.h"
#include "topology/render/gpu_links.h"
#include "topology/render/name_list.h"

namespace beeline::topology {
namespace {

std::string interfaces_text(const Node& node) {
  std::string text;
  for (const OsDevice& device : node.os_devices) {
    if (device.kind == OsKind::kInterface) text += (text.empty() ? "" : ", ") + device.name;
  }
  return text;
}

std::string device_line(const Graph& graph, const DisplayNames& names, NodeIndex device,
                        std::size_t width) {
  const Node& node = graph[device];
  std::string line = fmt::format("{:<{}}  {:<12}", names[device], width,
                                 node.pci ? to_string(*node.pci) : "no PCI");
  const auto add = [&line](const std::string& text) {
    if (!text.empty()) line += "  " + text;
  };
  add(node.name);
  add(gpu_links_text(node));
  add(ports_text(node));
  add(interfaces_text(node));
  if (!node.bond.empty()) add("in " + node.bond);
  if (node.physical_function != kNoNode)
    add("virtual function of " + names[node.physical_function]);
  return line + "\n";
}

// "400 Gb/s InfiniBand", "25 Gb/s Ethernet + 25 Gb/s Ethernet"
std::string rates_text(const Node& node) {
  Node without_states = node;
  for (NicPort& port : without_states.nic_ports) port.state = PortState::kUnknown;
  const std::string text = ports_text(without_states);
  return text.empty() ? "?" : text;
}

// "up", "up + down"
std::string states_text(const Node& node) {
  std::string text;
  for (const NicPort& port : node.nic_ports) {
    text += text.empty() ? "" : " + ";
    text += port.state == PortState::kActive ? "up" : port.state == PortState::kDown ? "down" : "?";
  }
  return text.empty() ? "?" : text;
}

}  // namespace

std::string nics_text(const Graph& graph, std::size_t width) {
  if (graph.nics().empty()) return "";
  const DisplayNames names(graph);
  std::vector<Cells> rows{{"NIC", "address", "NUMA node", "ports", "state", "interface"}};
  for (const NodeIndex nic : graph.nics()) {
    const Node& node = graph[nic];
    rows.push_back({names[nic], node.pci ? to_string(*node.pci) : "no PCI",
                    node.numa < 0 ? "?" : fmt::to_string(node.numa), rates_text(node),
                    states_text(node), interfaces_text(node)});
  }
  return aligned(rows, width);
}

std::string ports_text(const Node& node) {
  std::string text;
  for (const NicPort& port : node.nic_ports) {
    std::string one =
        port.speed_mbps == 0 ? "" : fmt::format("{:g} Gb/s", port.speed_mbps / 1000.0);
    const auto add = [&one](const char* more) {
      one += (one.empty() ? "" : " ") + std::string(more);
    };
    if (port.link_layer != LinkLayer::kUnknown) add(to_string(port.link_layer));
    if (port.state == PortState::kDown) add("(down)");
    if (!one.empty()) text += (text.empty() ? "" : " + ") + one;
  }
  return text;
}

std::string models_text(const Graph& graph) {
  const DisplayNames names(graph);
  GroupedLines lines;
  for (const std::size_t place : names.gpu_order()) {
    const NodeIndex gpu = graph.gpus()[place];
    std::string line = graph[gpu].name;
    const std::string links = gpu_links_text(graph[gpu]);
    if (!links.empty()) line += (line.empty() ? "" : "; ") + links;
    if (!line.empty()) lines.add(line, names[gpu]);
  }
  return lines.text();
}

std::string devices_text(const Graph& graph) {
  const DisplayNames names(graph);
  const std::vector<NodeIndex> devices = shown_devices(graph, names);
  std::size_t width = 0;
  for (const NodeIndex device : devices) width = std::max(width, names[device].size());
  std::string text;
  for (const NodeIndex device : devices) text += device_line(graph, names, device, width);
  return text;
}

std::string findings_text(const Graph& graph, Severity severity) {
  const DisplayNames names(graph);
  GroupedLines lines;
  for (const Finding& finding : findings(graph)) {
    if (finding.severity != severity || finding.kind == FindingKind::kFarNic) continue;
    lines.add(describe(finding), finding.device == kNoNode ? "the machine" : names[finding.device]);
  }
  return lines.text();
}

}  // namespace beeline::topology
