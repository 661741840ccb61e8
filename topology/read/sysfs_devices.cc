// SPDX-License-Identifier: Apache-2.0
//
// Reads the files of each PCI function first, then the classes (net, infiniband, drm) whose entries
// refer to functions.
#include "topology/read/sysfs_devices.h"

#include <algorithm>
#include <map>

#include "topology/read/sysfs_files.h"
#include "topology/read/sysfs_text.h"
#include "topology/role.h"

namespace beeline::topology {
namespace {

class SysfsDevices {
 public:
  SysfsDevices(std::vector<Node>& nodes, const std::string& root, Remarks& remarks)
      : nodes_(nodes), root_(root), remarks_(remarks) {
    for (NodeIndex i = 0; i < nodes.size(); ++i) {
      const Node& node = nodes[i];
      if (node.pci && node.kind > NodeKind::kHostBridge) by_address_[*node.pci] = i;
    }
  }

  void add() {
    for (const auto& [address, index] : by_address_) add_files(nodes_[index], address);
    for (const auto& [address, index] : by_address_) add_physical_function(index, address);
    add_interfaces();
    add_rdma_devices();
    add_displays();
    for (Node& node : nodes_) {
      if (node.kind == NodeKind::kDevice) node.role = guess_role(node);
    }
    remark_unseen();
    remark_without_numa();
  }

 private:
  std::string folder_of(const PciAddress& address) const {
    return root_ + "/bus/pci/devices/" + to_string(address) + "/";
  }

  void add_files(Node& node, const PciAddress& address) const {
    const std::string folder = folder_of(address);
    // hwloc knows the first 16 bits only.
    if (const auto whole = hex(folder + "class", 0xffffff); whole != 0) node.pci_class = whole;
    if (node.vendor == 0) node.vendor = static_cast<std::uint16_t>(hex(folder + "vendor", 0xffff));
    if (node.device == 0) node.device = static_cast<std::uint16_t>(hex(folder + "device", 0xffff));
    node.subsystem_vendor = static_cast<std::uint16_t>(hex(folder + "subsystem_vendor", 0xffff));
    node.subsystem_device = static_cast<std::uint16_t>(hex(folder + "subsystem_device", 0xffff));
    if (node.numa < 0) node.numa = parse_int(first_line(folder + "numa_node")).value_or(-1);
    if (node.numa < 0) node.numa = -1;
    node.link_now = link(folder + "current");
    node.link_max = link(folder + "max");
  }

  static std::uint32_t hex(const std::string& path, std::uint32_t most) {
    const std::uint32_t number = parse_hex(first_line(path)).value_or(0);
    return number <= most ? number : 0;
  }

  static PcieLink link(const std::string& prefix) {
    return {.mega_transfers = parse_link_rate(first_line(prefix + "_link_speed")).value_or(0),
            .lanes = parse_link_width(first_line(prefix + "_link_width")).value_or(0)};
  }

  NodeIndex device_at(const std::optional<PciAddress>& address) const {
    if (!address) return kNoNode;
    const auto found = by_address_.find(*address);
    const bool is_device =
        found != by_address_.end() && nodes_[found->second].kind == NodeKind::kDevice;
    return is_device ? found->second : kNoNode;
  }

  void add_physical_function(NodeIndex index, const PciAddress& address) {
    if (nodes_[index].kind != NodeKind::kDevice) return;
    const PciChain chain = pci_chain_of(link_target(folder_of(address) + "physfn"));
    if (chain.functions.empty()) return;
    const NodeIndex physical = device_at(chain.functions.back());
    if (physical != index) nodes_[index].physical_function = physical;
  }

  static void add_name(Node& node, OsKind kind, const std::string& name) {
    const OsDevice device{kind, name};
    if (std::ranges::find(node.os_devices, device) == node.os_devices.end()) {
      node.os_devices.push_back(device);
    }
  }

  void add_interfaces() {
    const std::string folder = root_ + "/class/net/";
    for (const std::string& name : names_in(folder)) {
      const NodeIndex device = device_at(function_of(folder + name));
      if (device == kNoNode) continue;
      add_name(nodes_[device], OsKind::kInterface, name);
      const std::string master = link_target(folder + name + "/master");
      const std::string bond = master.substr(master.rfind('/') + 1);
      // A bridge's members have a master, too.
      if (!bond.empty() && is_there(folder + bond + "/bonding")) nodes_[device].bond = bond;
    }
  }

  void add_rdma_devices() {
    const std::string folder = root_ + "/class/infiniband/";
    for (const std::string& name : names_in(folder)) {
      NodeIndex device = device_at(function_of(folder + name));
      if (device == kNoNode) device = card_of_soft_device(folder + name);
      if (device == kNoNode) {
        device = nodes_.size();
        nodes_.push_back({.kind = NodeKind::kDevice, .parent = machine()});
      }
      add_name(nodes_[device], OsKind::kRdma, name);
      if (nodes_[device].nic_ports.empty()) add_ports(nodes_[device], folder + name + "/ports/");
    }
  }

  // A soft RDMA device is placed where its network interface is. rxe names the interface. siw, like
  // all iWARP devices, has a single GID that begins with the interface's hardware address.
  // Interfaces on top of a card (VLANs) may have the same address.
  NodeIndex card_of_soft_device(const std::string& folder) const {
    const std::string interfaces = root_ + "/class/net/";
    const std::string interface = first_line(folder + "/parent");
    if (!interface.empty()) return device_at(function_of(interfaces + interface));
    if (!first_line(folder + "/node_type").starts_with("4")) return kNoNode;  // "4: RNIC"
    const std::string gid = without_colons(first_line(folder + "/ports/1/gids/0"));
    for (const std::string& name : names_in(interfaces)) {
      const std::string address = without_colons(first_line(interfaces + name + "/address"));
      if (address.empty() || !gid.starts_with(address)) continue;
      const NodeIndex device = device_at(function_of(interfaces + name));
      if (device != kNoNode) return device;
    }
    return kNoNode;
  }

  static std::string without_colons(std::string text) {
    std::erase(text, ':');
    return text;
  }

  NodeIndex machine() const {
    const auto is_machine = [](const Node& node) { return node.kind == NodeKind::kMachine; };
    return static_cast<NodeIndex>(std::ranges::find_if(nodes_, is_machine) - nodes_.begin());
  }

  static void add_ports(Node& node, const std::string& folder) {
    for (const std::string& name : names_in(folder)) {
      const int number = parse_int(name).value_or(0);
      if (number <= 0) continue;
      node.nic_ports.push_back(
          {.number = static_cast<std::uint32_t>(number),
           .speed_mbps = parse_port_rate(first_line(folder + name + "/rate")).value_or(0),
           .state = state_of(first_line(folder + name + "/state")),
           .link_layer = link_layer_of(first_line(folder + name + "/link_layer"))});
    }
  }

  // Only "4: ACTIVE" and "5: ACTIVE_DEFER" carry data.
  static PortState state_of(std::string_view text) noexcept {
    if (text.empty()) return PortState::kUnknown;
    const bool is_active = text.starts_with("4:") || text.starts_with("5:");
    return is_active ? PortState::kActive : PortState::kDown;
  }

  static LinkLayer link_layer_of(std::string_view text) noexcept {
    if (text == "InfiniBand") return LinkLayer::kInfiniBand;
    return text == "Ethernet" ? LinkLayer::kEthernet : LinkLayer::kUnknown;
  }

  void add_displays() {
    const std::string folder = root_ + "/class/drm/";
    for (const std::string& name : names_in(folder)) {
      const bool is_connector = name.find('-') != std::string::npos;  // card0-DP-1
      if (is_connector || !(name.starts_with("card") || name.starts_with("renderD"))) continue;
      const NodeIndex device = device_at(function_of(folder + name));
      if (device != kNoNode) add_name(nodes_[device], OsKind::kDisplay, name);
    }
  }

  // hwloc always reports a NUMA node, and does not report that it saw no PCI device.
  void remark_unseen() {
    const std::string numas = root_ + "/devices/system/node/";
    const auto is_numa = [](const std::string& name) { return name.starts_with("node"); };
    if (std::ranges::none_of(names_in(numas), is_numa)) {
      remarks_.add("NUMA nodes cannot be seen: there are none in " + numas +
                   ", so it is uncertain which device is near which processor");
    }
    const std::string functions = root_ + "/bus/pci/devices/";
    if (names_in(functions).empty()) {
      remarks_.add("PCI devices cannot be seen: there are none in " + functions);
    }
    const std::string rdma = root_ + "/class/infiniband/";
    if (!is_there(rdma)) {
      remarks_.add("RDMA devices cannot be seen: there is no " + rdma +
                   "; load the NIC's driver and ib_uverbs, and mount /sys in a container");
    }
  }

  void remark_without_numa() {
    const auto is_numa = [](const Node& node) { return node.kind == NodeKind::kNumaNode; };
    if (std::ranges::count_if(nodes_, is_numa) < 2) return;
    const auto has_no_numa = [](const Node& node) {
      return node.role != DeviceRole::kOther && node.pci && node.numa < 0;
    };
    const auto count = std::ranges::count_if(nodes_, has_no_numa);
    if (count == 0) return;
    const Node& first = *std::ranges::find_if(nodes_, has_no_numa);
    const std::string others = count > 1 ? " and " + std::to_string(count - 1) + " more" : "";
    remarks_.add(label(first) + others +
                 ": no NUMA node is reported; check the settings of the BIOS or of the virtual "
                 "machine");
  }

  std::vector<Node>& nodes_;
  const std::string& root_;
  Remarks& remarks_;
  std::map<PciAddress, NodeIndex> by_address_;
};

}  // namespace

void add_sysfs_devices(std::vector<Node>& nodes, const std::string& root, Remarks& remarks) {
  SysfsDevices(nodes, root, remarks).add();
}

}  // namespace beeline::topology
