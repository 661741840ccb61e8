// SPDX-License-Identifier: Apache-2.0
#include "topology/write/nccl_xml.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "topology/graph_build.h"
#include "topology/nccl_link.h"
#include "topology/read/sysfs_text.h"
#include "topology/xml_escape.h"

namespace beeline::topology {
namespace {

constexpr std::uint16_t kAmdGpus = 0x1002;
constexpr int kRcclVersion = 2;

using Attribute = std::pair<const char*, std::string>;

std::string hex(std::uint32_t number, int digits) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%0*x", digits, number);
  return text.data();
}

// GPUs and NICs that NCCL can identify: by address, or a NIC by name.
bool is_wanted(const Node& node) noexcept {
  if (node.role == DeviceRole::kOther || node.pci) return node.role != DeviceRole::kOther;
  return node.role == DeviceRole::kRdmaNic && !os_name(node, OsKind::kRdma).empty();
}

std::vector<std::vector<NodeIndex>> children_of(std::span<const Node> nodes) {
  std::vector<std::vector<NodeIndex>> children(nodes.size());
  for (NodeIndex i = 1; i < nodes.size(); ++i) children[nodes[i].parent].push_back(i);
  return children;
}

// NCCL derives the kind of a device from its class only.
std::uint32_t class_of(const Node& node) noexcept {
  switch (node.role) {
    case DeviceRole::kGpu:
      return node.pci_class >> 16 == 0x03 || node.pci_class >> 16 == 0x12 ? node.pci_class
                                                                          : 0x030200;
    case DeviceRole::kRdmaNic: return node.pci_class >> 16 == 0x02 ? node.pci_class : 0x020000;
    case DeviceRole::kOther: break;
  }
  return 0x060400;
}

// The part of a machine that is written: NUMA nodes, switches, GPUs and NICs.
class Drawing {
 public:
  explicit Drawing(const Graph& graph)
      : graph_(graph), children_(children_of(graph.nodes())), devices_below_(graph.size()) {
    // Backwards, because children come after their parents.
    for (NodeIndex i = graph.size(); i-- > 1;) {
      if (is_wanted(graph[i])) ++devices_below_[i];
      devices_below_[graph[i].parent] += devices_below_[i];
    }
  }

  // In the order of a graph that contains only these nodes. It may differ from the order before,
  // and a file that is read and written again must not change.
  std::vector<Node> nodes() {
    drawn_.push_back({.kind = NodeKind::kMachine, .name = graph_[0].name});
    std::map<int, NodeIndex> numas;
    for (const Node& node : graph_.nodes()) {
      if (node.kind != NodeKind::kNumaNode) continue;
      numas[node.number] = drawn_.size();
      drawn_.push_back({.kind = node.kind, .parent = 0, .number = node.number, .cpus = node.cpus});
      drawn_.back().cpu = cpu_of(node);
    }
    for (NodeIndex i = 1; i < graph_.size(); ++i) {
      const Node& node = graph_[i];
      const bool is_io = node.kind >= NodeKind::kHostBridge;
      if (!is_io || graph_[node.parent].kind >= NodeKind::kHostBridge) continue;
      const auto numa = numas.find(node.numa);
      draw(i, numa == numas.end() ? 0 : numa->second);
    }
    return in_order(std::move(drawn_));
  }

 private:
  // Graph::make limits the depth of bridges, and so the recursion.
  void draw(NodeIndex index, NodeIndex above) {
    if (devices_below_[index] == 0) return;
    if (is_drawn(index)) {
      drawn_.push_back(drawn_node(index, above));
      above = drawn_.size() - 1;
    }
    for (const NodeIndex child : children_[index]) draw(child, above);
  }

  bool is_drawn(NodeIndex index) const {
    const Node& node = graph_[index];
    if (node.kind == NodeKind::kDevice) return true;
    if (node.kind != NodeKind::kBridge) return false;
    switch (node.port) {
      case BridgePort::kUpstream:
      case BridgePort::kSwitch: return true;
      case BridgePort::kDownstream: return false;
      case BridgePort::kUnknown:
      case BridgePort::kRoot: break;
    }
    const auto leads_to_some = [this](NodeIndex child) { return devices_below_[child] > 0; };
    return std::ranges::count_if(children_[index], leads_to_some) > 1;
  }

  // On a live machine the package has the facts about the processor.
  const CpuFacts& cpu_of(const Node& numa) const noexcept {
    return numa.cpu != CpuFacts() ? numa.cpu : graph_[numa.parent].cpu;
  }

  Node drawn_node(NodeIndex index, NodeIndex above) const {
    const Node& from = graph_[index];
    Node node{.kind = from.kind, .parent = above, .pci = from.pci};
    node.pci_class = class_of(from);
    node.vendor = from.vendor;
    node.device = from.device;
    node.subsystem_vendor = from.subsystem_vendor;
    node.subsystem_device = from.subsystem_device;
    node.link_now = link_for_nccl(graph_, index);
    node.role = from.role;
    node.gpu = from.gpu;
    for (const OsDevice& device : from.os_devices) {
      if (device.kind == OsKind::kRdma) node.os_devices.push_back(device);
    }
    node.nic_ports = from.nic_ports;
    return node;
  }

  const Graph& graph_;
  std::vector<std::vector<NodeIndex>> children_;
  std::vector<std::size_t> devices_below_;
  std::vector<Node> drawn_;
};

class NcclWriter {
 public:
  NcclWriter(std::vector<Node> nodes, int version)
      : nodes_(std::move(nodes)), children_(children_of(nodes_)), version_(version) {}

  std::string write() {
    std::vector<Attribute> attributes{{"version", std::to_string(version_)}};
    if (!nodes_[0].name.empty()) attributes.emplace_back("name", nodes_[0].name);
    open("system", attributes);
    write_numaless();
    for (const NodeIndex child : children_[0]) {
      if (nodes_[child].kind == NodeKind::kNumaNode) write_numa(child);
    }
    close("system");
    return std::move(text_);
  }

 private:
  // For NCCL every device belongs to a processor.
  void write_numaless() {
    const auto is_io = [this](NodeIndex child) { return nodes_[child].kind >= NodeKind::kBridge; };
    if (std::ranges::none_of(children_[0], is_io)) return;
    open("cpu", {{"numaid", "-1"}});
    for (const NodeIndex child : children_[0]) {
      if (is_io(child)) write_node(child);
    }
    close("cpu");
  }

  void write_numa(NodeIndex numa) {
    std::vector<Attribute> attributes{{"numaid", std::to_string(nodes_[numa].number)}};
    if (const std::string mask = mask_of_list(nodes_[numa].cpus); !mask.empty()) {
      attributes.emplace_back("affinity", mask);
    }
    const CpuFacts& cpu = nodes_[numa].cpu;
    if (!cpu.arch.empty()) attributes.emplace_back("arch", cpu.arch);
    if (!cpu.vendor.empty()) attributes.emplace_back("vendor", cpu.vendor);
    if (cpu.family >= 0) attributes.emplace_back("familyid", std::to_string(cpu.family));
    if (cpu.model >= 0) attributes.emplace_back("modelid", std::to_string(cpu.model));
    open("cpu", attributes);
    for (const NodeIndex child : children_[numa]) write_node(child);
    close("cpu");
  }

  void write_node(NodeIndex index) {
    const Node& node = nodes_[index];
    const bool has_element = node.kind == NodeKind::kBridge || node.pci.has_value();
    if (has_element) open("pci", pci_attributes(node));
    write_nets(node);
    if (node.role == DeviceRole::kGpu) write_gpu(node.gpu);
    for (const NodeIndex child : children_[index]) write_node(child);
    if (has_element) close("pci");
  }

  // The speed is written with the first name. Several names are rare, and share their ports.
  void write_nets(const Node& node) {
    bool is_first = true;
    for (const OsDevice& device : node.os_devices) {
      if (is_first) open("nic", {});
      if (!is_first || node.nic_ports.empty()) write_net(device, nullptr);
      for (const NicPort& port : node.nic_ports) {
        if (is_first) write_net(device, &port);
      }
      is_first = false;
    }
    if (!node.os_devices.empty()) close("nic");
  }

  // Ranks and GPUDirect capabilities belong to a job; NCCL determines them again.
  void write_gpu(const GpuFacts& gpu) {
    if (gpu == GpuFacts()) return;
    std::vector<Attribute> attributes;
    if (gpu.number >= 0) attributes.emplace_back("dev", std::to_string(gpu.number));
    if (gpu.sm >= 0) attributes.emplace_back("sm", std::to_string(gpu.sm));
    if (!gpu.gcn.empty()) attributes.emplace_back("gcn", gpu.gcn);
    if (!gpu.arch.empty()) attributes.emplace_back("arch", gpu.arch);
    open("gpu", attributes);
    for (const GpuLink& link : gpu.links) write_gpu_link(link);
    close("gpu");
  }

  void write_gpu_link(const GpuLink& link) {
    const Attribute count{"count", std::to_string(link.count)};
    if (link.kind == GpuLinkKind::kC2c) {
      open("c2c", {{"bw", std::to_string(link.mbytes_per_second)}, count});
      return close("c2c");
    }
    const char* const name = link.kind == GpuLinkKind::kNvLink ? "nvlink" : "xgmi";
    std::vector<Attribute> attributes{{"target", link.target}, count};
    if (link.target_class != 0) attributes.emplace_back("tclass", hex(link.target_class, 6));
    open(name, attributes);
    close(name);
  }

  // No port is written if none is known.
  void write_net(const OsDevice& device, const NicPort* port) {
    std::vector<Attribute> attributes{{"name", device.name}};
    if (port != nullptr && port->speed_mbps != 0) {
      attributes.emplace_back("speed", std::to_string(port->speed_mbps));
    }
    if (port != nullptr) attributes.emplace_back("port", std::to_string(port->number));
    open("net", attributes);
    close("net");
  }

  static std::vector<Attribute> pci_attributes(const Node& node) {
    std::vector<Attribute> attributes;
    if (node.pci) attributes.emplace_back("busid", to_string(*node.pci));
    attributes.emplace_back("class", hex(node.pci_class, 6));
    if (node.vendor != 0) attributes.emplace_back("vendor", hex(node.vendor, 4));
    if (node.device != 0) attributes.emplace_back("device", hex(node.device, 4));
    if (node.subsystem_vendor != 0) {
      attributes.emplace_back("subsystem_vendor", hex(node.subsystem_vendor, 4));
    }
    if (node.subsystem_device != 0) {
      attributes.emplace_back("subsystem_device", hex(node.subsystem_device, 4));
    }
    const PcieLink& link = node.link_now;
    attributes.emplace_back("link_speed", link_rate_text(link.mega_transfers));
    attributes.emplace_back("link_width", link.lanes == 0 ? "" : std::to_string(link.lanes));
    return attributes;
  }

  void open(const char* name, const std::vector<Attribute>& attributes) {
    end_start();
    text_.append(depth_++ * 2, ' ').append("<").append(name);
    for (const auto& [key, value] : attributes) {
      text_.append(" ").append(key).append("=\"").append(escape_xml(value)).append("\"");
    }
    start_is_open_ = true;
  }

  void close(const char* name) {
    --depth_;
    if (start_is_open_) {
      text_ += "/>\n";
    } else {
      text_.append(depth_ * 2, ' ').append("</").append(name).append(">\n");
    }
    start_is_open_ = false;
  }

  void end_start() {
    if (start_is_open_) text_ += ">\n";
    start_is_open_ = false;
  }

  std::vector<Node> nodes_;
  std::vector<std::vector<NodeIndex>> children_;
  int version_;
  std::string text_;
  std::size_t depth_ = 0;
  bool start_is_open_ = false;
};

}  // namespace

int nccl_xml_version(const Graph& graph) noexcept {
  if (graph.nccl_version() != 0) return graph.nccl_version();
  const auto is_amd = [&graph](NodeIndex gpu) { return graph[gpu].vendor == kAmdGpus; };
  return !graph.gpus().empty() && std::ranges::all_of(graph.gpus(), is_amd) ? kRcclVersion : 1;
}

std::string write_nccl_xml(const Graph& graph, int version) {
  return NcclWriter(Drawing(graph).nodes(), version == 0 ? nccl_xml_version(graph) : version)
      .write();
}

}  // namespace beeline::topology
