// SPDX-License-Identifier: Apache-2.0
// Writers for the parts of a sysfs tree. Only sysfs_tree.cc calls them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "softnic/spec/fabric_spec.h"
#include "softnic/spec/pci_path.h"
#include "softnic/spec/sysfs_writer.h"

namespace softnic {

// A PCI function and the contents of its sysfs directory.
struct PciFunction {
  PciPath path;
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint32_t class_code = 0;  // 0x020000: Ethernet controller
  int numa = 0;
  std::uint8_t link_gen = 3;  // PCIe generation of the link above it
  const char* driver = "";
  std::uint64_t bar1 = 0;  // size of BAR1 in bytes; 0: the function has none
};

// devices/pciDDDD:BB/..., bus/pci, class/pci_bus
void write_pci(SysfsWriter& out, const HostSpec& host, const std::vector<PciFunction>& functions);

// infiniband/, infiniband_verbs/ and net/ below the device's PCI directory, and their class links.
// `index` is the position of the device on the host: the N of uverbsN.
void write_rdma_device(SysfsWriter& out, const HostSpec& host, const DeviceSpec& device,
                       std::uint32_t index, const std::string& pci_dir);
void write_netdev(SysfsWriter& out, const DeviceSpec& device, std::uint32_t port_number,
                  std::uint32_t ifindex, const std::string& pci_dir);

// The contents of ports/N/state and phys_state.
const char* state_text(bool up);
const char* phys_state_text(bool up, LinkLayer link_layer);

// The contents of the three files of a GID table entry. A null `gid` means an empty entry.
struct GidTexts {
  std::string address;
  std::string type;
  std::string netdev;
};
GidTexts gid_texts(const GidSpec* gid, const std::string& netdev);

// devices/system/{cpu,node}
void write_system(SysfsWriter& out, const HostSpec& host);

// The CPUs of a NUMA node (-1: all CPUs of the host), as local_cpulist and local_cpus print them.
std::string cpu_list(const HostSpec& host, int numa);
std::string cpu_map(const HostSpec& host, int numa);

}  // namespace softnic
