// SPDX-License-Identifier: Apache-2.0
//
// Reads processors from devices/system, and the PCI tree from the targets of the links in
// bus/pci/devices.
#include "topology/read/sysfs.h"

#include <map>

#include "topology/read/remarks.h"
#include "topology/read/sysfs_devices.h"
#include "topology/read/sysfs_files.h"
#include "topology/read/sysfs_text.h"

namespace beeline::topology {
namespace {

// A server has hundreds of PCI functions that carry no data. This selects the same ones as hwloc,
// so that the graph of a machine does not depend on whether hwloc is installed.
bool is_data_function(std::uint32_t pci_class) noexcept {
  switch (pci_class >> 16) {
    case 0x00:               // of no class: BXI's NICs, virtio
    case 0x01:               // storage
    case 0x02:               // networks
    case 0x03:               // displays
    case 0x0b:               // coprocessors
    case 0x12: return true;  // accelerators
    default: break;
  }
  switch (pci_class >> 8) {
    case 0x0502:               // CXL memory
    case 0x0680:               // other bridges: NVSwitch
    case 0x0c04:               // Fibre Channel
    case 0x0c06: return true;  // InfiniBand of old
    default: return false;
  }
}

class SysfsReader {
 public:
  explicit SysfsReader(const std::string& root) : root_(root) {
    parts_.source = root == "/sys" ? "this machine" : root;
    parts_.nodes.push_back({.kind = NodeKind::kMachine});
  }

  GraphParts read() {
    read_processors();
    read_functions();
    remark_on_places();
    add_sysfs_devices(parts_.nodes, root_, remarks_);
    parts_.remarks = remarks_.take();
    return std::move(parts_);
  }

 private:
  NodeIndex add(Node node) {
    parts_.nodes.push_back(std::move(node));
    return parts_.nodes.size() - 1;
  }

  void read_processors() {
    const std::string folder = root_ + "/devices/system/node/";
    for (const std::string& name : names_in(folder)) {
      const auto number = name.starts_with("node") ? parse_int(name.substr(4)) : std::nullopt;
      if (!number || *number < 0) continue;
      std::string cpus = first_line(folder + name + "/cpulist");
      if (!is_cpu_list(cpus)) cpus.clear();  // of memory without processors
      const NodeIndex above = package_of(cpus);
      add({.kind = NodeKind::kNumaNode, .parent = above, .number = *number, .cpus = cpus});
    }
  }

  // The package that contains all of these processors, otherwise the machine.
  NodeIndex package_of(const std::string& cpus) {
    const auto ends = ends_of_list(cpus);
    if (!ends) return 0;
    const int package = package_of_cpu(ends->first);
    if (package < 0 || package != package_of_cpu(ends->second)) return 0;
    const auto [known, is_new] = packages_.try_emplace(package, parts_.nodes.size());
    if (is_new) add({.kind = NodeKind::kPackage, .parent = 0, .number = package});
    return known->second;
  }

  int package_of_cpu(int cpu) const {
    return parse_int(first_line(root_ + "/devices/system/cpu/cpu" + std::to_string(cpu) +
                                "/topology/physical_package_id"))
        .value_or(-1);
  }

  void read_functions() {
    const std::string folder = root_ + "/bus/pci/devices/";
    for (const std::string& name : names_in(folder)) {
      const auto address = parse_pci_address(name);
      const auto pci_class = parse_pci_class(first_line(folder + name + "/class"));
      if (!address || !pci_class || !is_data_function(*pci_class)) continue;
      add_function(*address, pci_chain_of(link_target(folder + name)));
    }
  }

  void add_function(const PciAddress& address, const PciChain& chain) {
    NodeIndex above = 0;
    if (chain.root_bus) {
      const auto [known, is_new] = root_buses_.try_emplace(*chain.root_bus, parts_.nodes.size());
      if (is_new) add({.kind = NodeKind::kHostBridge, .parent = 0, .pci = chain.root_bus});
      above = known->second;
    } else {
      if (first_without_place_.empty()) first_without_place_ = to_string(address);
      ++without_place_;
    }
    for (const PciAddress& bridge : chain.functions) {
      if (bridge != address) above = add_bridge(bridge, above);
    }
    if (functions_.contains(address)) return;
    functions_[address] = add({.kind = NodeKind::kDevice, .parent = above, .pci = address});
  }

  void remark_on_places() {
    if (without_place_ == 0) return;
    const std::string others =
        without_place_ > 1 ? " and " + std::to_string(without_place_ - 1) + " more" : "";
    remarks_.add(first_without_place_ + others + ": position in the PCI tree unknown, because " +
                 root_ + "/bus/pci/devices has no symbolic links");
  }

  // A function with other functions below it is a bridge, whatever its class.
  NodeIndex add_bridge(const PciAddress& address, NodeIndex above) {
    const auto [known, is_new] = functions_.try_emplace(address, parts_.nodes.size());
    if (is_new) add({.kind = NodeKind::kBridge, .parent = above, .pci = address});
    parts_.nodes[known->second].kind = NodeKind::kBridge;
    return known->second;
  }

  const std::string& root_;
  GraphParts parts_;
  Remarks remarks_;
  std::map<int, NodeIndex> packages_;
  std::map<PciAddress, NodeIndex> root_buses_;
  std::map<PciAddress, NodeIndex> functions_;  // bridges included
  std::string first_without_place_;
  std::size_t without_place_ = 0;
};

}  // namespace

GraphParts read_sysfs(const std::string& root) { return SysfsReader(root).read(); }

}  // namespace beeline::topology
