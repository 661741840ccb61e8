// SPDX-License-Identifier: Apache-2.0
//
// Writes one folder for each function, and links from the classes to it.
#include "tests/tools/topology/read/sysfs_image.h"

#include <fmt/format.h>

#include "topology/read/sysfs_text.h"

namespace beeline::topology {
namespace {

std::string folder_of(const Graph& graph, NodeIndex index) {
  const Node& node = graph[index];
  if (node.kind == NodeKind::kHostBridge) {
    return "devices/pci" + to_string(*node.pci).substr(0, to_string(*node.pci).rfind(':'));
  }
  return folder_of(graph, node.parent) + "/" + to_string(*node.pci);
}

void write_link(const ScratchFolder& out, const std::string& prefix, const PcieLink& link) {
  out.write(prefix + "_link_speed",
            link.mega_transfers == 0 ? "Unknown\n" : link_rate_text(link.mega_transfers) + "\n");
  out.write(prefix + "_link_width", std::to_string(link.lanes) + "\n");
}

void write_rdma(const ScratchFolder& out, const Node& node, const std::string& above,
                const std::string& name) {
  const std::string folder = above + "/infiniband/" + name;
  out.write(folder + "/node_type", "1: CA\n");
  for (const NicPort& port : node.nic_ports) {
    out.write(fmt::format("{}/ports/{}/rate", folder, port.number),
              fmt::format("{} Gb/sec (4X NDR)\n", port.speed_mbps / 1000.0));
  }
  out.link("class/infiniband/" + name, folder);
}

void write_function(const ScratchFolder& out, const Graph& graph, NodeIndex index) {
  const Node& node = graph[index];
  const std::string folder = folder_of(graph, index);
  out.write(folder + "/class", fmt::format("0x{:06x}\n", node.pci_class));
  out.write(folder + "/vendor", fmt::format("0x{:04x}\n", node.vendor));
  out.write(folder + "/device", fmt::format("0x{:04x}\n", node.device));
  out.write(folder + "/numa_node", fmt::format("{}\n", node.numa));
  write_link(out, folder + "/current", node.link_now);
  write_link(out, folder + "/max", node.link_max);
  out.link("bus/pci/devices/" + to_string(*node.pci), folder);
  if (node.physical_function != kNoNode) {
    out.link(folder + "/physfn", folder_of(graph, node.physical_function));
  }
  for (const OsDevice& device : node.os_devices) {
    if (device.kind == OsKind::kRdma) {
      write_rdma(out, node, folder, device.name);
    } else if (device.kind == OsKind::kInterface) {
      const std::string net = folder + "/net/" + device.name;
      out.write(net + "/mtu", "1500\n");
      out.link("class/net/" + device.name, net);
      if (node.bond.empty()) continue;
      out.write("devices/virtual/net/" + node.bond + "/bonding/mode", "802.3ad 4\n");
      out.link(net + "/master", "devices/virtual/net/" + node.bond);
    }
  }
}

void write_numa(const ScratchFolder& out, const Graph& graph, const Node& node) {
  const std::string folder = fmt::format("devices/system/node/node{}", node.number);
  out.write(folder + "/cpulist", node.cpus + "\n");
  const auto ends = ends_of_list(node.cpus);
  const Node& above = graph[node.parent];
  if (!ends || above.kind != NodeKind::kPackage) return;
  for (const int cpu : {ends->first, ends->second}) {
    out.write(fmt::format("devices/system/cpu/cpu{}/topology/physical_package_id", cpu),
              fmt::format("{}\n", above.number));
  }
}

}  // namespace

void add_classes(GraphParts& parts) {
  for (Node& node : parts.nodes) {
    if (node.pci_class != 0) continue;
    if (node.kind == NodeKind::kBridge) node.pci_class = 0x060400;
    if (node.kind != NodeKind::kDevice) continue;
    switch (node.role) {
      case DeviceRole::kGpu:
        node.pci_class = 0x030200;
        node.vendor = 0x10de;
        break;
      case DeviceRole::kRdmaNic: node.pci_class = 0x020700; break;
      case DeviceRole::kOther: node.pci_class = 0x010802; break;
    }
  }
}

void write_sysfs_image(const Graph& graph, const ScratchFolder& out) {
  for (const char* folder : {"class/infiniband/.here", "class/net/.here"}) out.write(folder, "");
  std::filesystem::create_directory_symlink("../../devices/virtual/net/bond0",
                                            std::filesystem::path(out.path()) / "class/net/bond0");
  for (NodeIndex i = 0; i < graph.size(); ++i) {
    const Node& node = graph[i];
    if (node.kind == NodeKind::kNumaNode) write_numa(out, graph, node);
    if (node.kind > NodeKind::kHostBridge && node.pci) write_function(out, graph, i);
  }
}

}  // namespace beeline::topology
