// SPDX-License-Identifier: Apache-2.0
#include "softnic/spec/sysfs_tree.h"

#include <fmt/format.h>

#include <algorithm>

#include "softnic/spec/sysfs_parts.h"

namespace softnic {
namespace {

// The slowest PCIe generation whose x16 link carries the port.
std::uint8_t link_gen_for(std::uint32_t gbps) {
  if (gbps <= 100) return 3;
  if (gbps <= 200) return 4;
  return gbps <= 400 ? 5 : 6;
}

PciFunction nic_function(const DeviceSpec& device, PciPath path) {
  std::uint32_t gbps = 0;
  for (const PortSpec& port : device.ports) gbps = std::max(gbps, port.gbps);
  const bool ethernet = device.link_layer == LinkLayer::kEthernet;
  return {std::move(path),
          static_cast<std::uint16_t>(kPciVendor),
          static_cast<std::uint16_t>(kPciDevice),
          ethernet ? 0x020000u : 0x020700u,
          device.numa,
          link_gen_for(gbps),
          "softnic"};
}

// NVIDIA, 3D controller.
PciFunction gpu_function(const GpuSpec& gpu, PciPath path) {
  return {std::move(path), 0x10de, 0x2330, 0x030200, gpu.numa, 5, "nvidia", gpu.bar1};
}

beeline::Outcome<std::vector<PciFunction>> pci_functions(const HostSpec& host) {
  std::vector<PciFunction> functions;
  for (const DeviceSpec& device : host.devices)
    functions.push_back(nic_function(device, BL_TRY(parse_pci_path(device.pci))));
  for (const GpuSpec& gpu : host.gpus)
    functions.push_back(gpu_function(gpu, BL_TRY(parse_pci_path(gpu.pci))));
  return functions;
}

void write_devices(SysfsWriter& out, const HostSpec& host) {
  std::uint32_t ifindex = 2;  // 1 is the loopback interface
  for (std::uint32_t d = 0; d < host.devices.size(); ++d) {
    const DeviceSpec& device = host.devices[d];
    const std::string pci_dir = "devices/" + device.pci;
    write_rdma_device(out, host, device, d, pci_dir);
    for (std::uint32_t p = 0; p < device.ports.size(); ++p)
      if (!device.ports[p].netdev.empty()) write_netdev(out, device, p + 1, ifindex++, pci_dir);
  }
}

}  // namespace

beeline::Outcome<void> write_sysfs_tree(const HostSpec& host, const std::string& root) {
  const std::vector<PciFunction> functions = BL_TRY(pci_functions(host));
  SysfsWriter out(root);
  for (const char* dir : {"class/infiniband", "class/infiniband_verbs", "class/net",
                          "class/pci_bus", "bus/pci/devices", "bus/pci/drivers"})
    out.dir(dir);
  out.link("sys", ".");  // for hwloc, which appends /sys to its root
  out.line("class/infiniband_verbs/abi_version", "6");
  write_system(out, host);
  write_pci(out, host, functions);
  write_devices(out, host);
  return out.result();
}

}  // namespace softnic
